# The pipeline-parallel schedules of PyTorch beside ours.
from tap import check, done, needs

needs("torch.distributed.pipelining")
import torch

check("PyTorch's pipelining is there", torch.__version__)
done()
