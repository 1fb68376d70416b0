/* print_costs.c - what messages, passes and stages of rank programs cost, in canonical text. */
#include "keywords.h"
#include "print_internal.h"

/* ---- messages -------------------------------------------------------------------------------- */

static bool has_link(const struct link *link)
{
    return link->latency.given || link->bandwidth.given || link->bytes.given;
}

static void put_link_pairs(struct printer *printer, const struct link *link)
{
    if (link->latency.given)
        put_pair_time(printer, "latency", link->latency.value, -1);
    if (link->bandwidth.given)
        put_pair_rate(printer, "bandwidth", link->bandwidth.value);
    if (link->bytes.given)
        put_pair_bytes(printer, "bytes", link->bytes.value, -1);
}

static void put_link(struct printer *printer, const char *key, const struct link *link)
{
    if (!has_link(link))
        return;
    put_word(printer, key);
    open_map(printer, FLOW);
    put_link_pairs(printer, link);
    close_map(printer);
}

static void put_edges(struct printer *printer, const struct links *links)
{
    if (links->edge_count == 0)
        return;
    put_word(printer, "edges");
    open_list(printer, FLOW);
    for (size_t i = 0; i < links->edge_count; i++) {
        open_map(printer, FLOW);
        put_pair_number(printer, "from", links->edges[i].from, -1);
        put_pair_number(printer, "to", links->edges[i].to, -1);
        put_link_pairs(printer, &links->edges[i].link);
        close_map(printer);
    }
    close_list(printer);
}

bool has_links(const struct links *links)
{
    return has_link(&links->all) || has_link(&links->forward) || has_link(&links->backward) ||
           has_link(&links->between) || links->node || links->edge_count;
}

void put_links(struct printer *printer, const struct links *links)
{
    put_link_pairs(printer, &links->all);
    put_link(printer, "forward", &links->forward);
    put_link(printer, "backward", &links->backward);
    put_pair_number(printer, "node", links->node, 0);
    put_link(printer, "between", &links->between);
    put_edges(printer, links);
}
