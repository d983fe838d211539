#!/bin/sh
# Makes tests/data/poems.git: a bare repository with a pack with deltas, loose objects, a merge, a
# rename, an annotated tag, a link and a binary file. Run it in this directory with git 2.40 or later.
set -eu
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null TZ=UTC
work=$(mktemp -d)
target=$PWD/data/poems.git
git init --quiet --initial-branch=main "$work"
cd "$work"
hour=0
commit() {
    name=$1
    shift
    hour=$((hour + 1))
    export GIT_AUTHOR_NAME="$name" GIT_AUTHOR_EMAIL="$(echo "$name" | tr 'A-Z ' 'a-z.')@example.com"
    export GIT_COMMITTER_NAME="$name" GIT_COMMITTER_EMAIL="$GIT_AUTHOR_EMAIL"
    export GIT_AUTHOR_DATE="2026-01-0$((hour % 9 + 1))T$((hour + 9)):00:00 +0100"
    export GIT_COMMITTER_DATE="2026-02-01T$((hour + 9)):00:00 +0100"
    git add --all
    "$@"
}
mkdir poems src
seq -f 'line %g of a long poem' 60 > poems/long.txt
printf 'roses are red\nviolets are blue\n' > poems/short.txt
commit 'Ada Lovelace' git commit --quiet --message 'Add poems' --message 'Two of them.'
printf 'fn main() {\n    println!("poem");\n}\n' > src/main.rs
ln -s poems/short.txt latest
printf 'GIF89a\0\0\1\2' > logo.gif
commit 'Grace Hopper' git commit --quiet --message 'Add a program'
commit 'Ada Lovelace' git tag --annotate v1.0 --message 'First version'
git switch --quiet --create sugar
printf 'roses are red\nviolets are blue\nsugar is sweet\n' > poems/short.txt
commit 'Grace Hopper' git commit --quiet --message 'Add sugar'
git switch --quiet main
sed -i 's/line 30/verse 30/' poems/long.txt
commit 'Ada Lovelace' git commit --quiet --message 'Call a line a verse'
commit 'Ada Lovelace' git merge --quiet --no-ff --message 'Merge sugar' sugar
git mv poems/short.txt poems/roses.txt
sed -i 's/violets/grapes/' poems/roses.txt
commit 'Ada Lovelace' git commit --quiet --message 'Rename a poem' --message 'And correct it.'
git gc --quiet --aggressive
printf 'and so are you\n' >> poems/roses.txt
commit 'Grace Hopper' git commit --quiet --message 'Finish the poem'
rm -rf "$target"
git clone --quiet --bare --no-hardlinks . "$target"
cd "$target"
rm -rf hooks info description branches logs packed-refs objects/info
git remote remove origin
# A clone over files copies packs and loose objects as they are.
printf '%s refs/heads/sugar\n' "$(git -C "$work" rev-parse sugar)" > packed-refs
printf '%s refs/tags/v1.0\n' "$(git -C "$work" rev-parse v1.0)" >> packed-refs
mkdir -p refs/heads
git -C "$work" rev-parse main > refs/heads/main
rm -f objects/pack/*.rev
rm -rf "$work"
