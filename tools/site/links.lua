-- SPDX-License-Identifier: Apache-2.0
-- links.lua - links between pages become links between HTML files; swsim(1) in a text becomes a link to the manual
-- page. The files and folders that a page links to are appended to the file that SITE_LINKED names.
local page = os.getenv("SITE_PAGE")
local folder = page:match("^(.*)/[^/]*$") or ""
local linked = io.open(os.getenv("SITE_LINKED"), "a")

-- A path that is relative to the page, as a path of the source tree.
local function in_tree(path)
    local parts = {}
    for part in (folder .. "/" .. path):gmatch("[^/]+") do
        if part == ".." then
            table.remove(parts)
        elseif part ~= "." then
            table.insert(parts, part)
        end
    end
    return table.concat(parts, "/")
end

local function exists(path)
    local file = io.open(path)
    if file then file:close() end
    return file ~= nil
end

local function is_folder(path)
    local file = io.open(path)
    local _, _, code = file and file:read(1)
    if file then file:close() end
    return code == 21 -- EISDIR
end

local function resolve(target)
    if target == "" or target:match("^%a+:") or target:match("^#") then return target end
    local path, fragment = target:match("^([^#]*)(#?.*)$")
    local tree = in_tree(path)
    if tree:match("%.md$") and exists(tree) then
        path = path:gsub("README%.md$", "index.md"):gsub("%.md$", ".html")
    elseif is_folder(tree) then
        linked:write(tree, "\n")
        path = path:gsub("/$", "") .. "/index.html"
    else
        linked:write(tree, "\n")
    end
    return path .. fragment
end

-- Where doc/ is, seen from the page.
local to_doc = folder:gsub("[^/]+", ".."):gsub("%.%.$", "../") .. "doc/"

function Link(link)
    link.target = resolve(link.target)
    return link
end

function Image(image)
    image.src = resolve(image.src)
    return image
end

function Str(text)
    local name, section, rest = text.text:match("^([%a-]+)%((%d)%)(.*)$")
    if name and exists("doc/" .. name .. "." .. section) then
        return { pandoc.Link(name .. "(" .. section .. ")", to_doc .. name .. "." .. section .. ".html"), pandoc.Str(rest) }
    end
end
