"""A workflow that Snakemake reads from a git repository: gitfile(...), github(...), gitlab(...).

Snakemake fetches files one by one, by names that its rules state. Package and configuration have
many that no rule states, and a script of a gitfile(...) it cannot find (9.27), so all that jobs need
is taken out as a whole; from there on the workflow is a local one.
"""

import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

IS_FROM_GIT = hasattr(workflow.current_basedir, "ref")
TAKEN = ["config", "envs", "rules", "src", "workflow"]


def folder_from_git(rules):
    """Return the workflow's folder in .snakemake/convs2s/COMMIT; `rules` is where rules/ are read."""
    from git import Repo  # slow, and Snakemake imports it with a git source alone

    is_local = hasattr(rules, "repo_path")  # else Snakemake has a bare clone in its cache
    repository = Repo(rules.repo_path) if is_local else rules.hosted_repo.repo
    commit = repository.commit(rules.ref)
    folder = Path(".snakemake/convs2s", commit.hexsha).absolute()
    inside = Path(rules.path).parent
    if folder.is_dir():
        return folder / inside
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryFile() as archive, TemporaryDirectory(dir=folder.parent) as partial:
        repository.archive(archive, commit, path=[str(inside / name) for name in TAKEN])
        archive.seek(0)
        with tarfile.open(fileobj=archive) as members:
            members.extraction_filter = getattr(tarfile, "data_filter", None)  # from 3.11.4 on
            members.extractall(Path(partial, "tree"))
        Path(partial, "tree", inside, ".revision").write_text(commit.hexsha)
        try:
            Path(partial, "tree").rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was faster
                raise
    return folder / inside
