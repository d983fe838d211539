#!/usr/bin/env node
// Starts the program of the platform package that npm has installed beside this one.
"use strict";

const { spawn } = require("node:child_process");
const { version } = require("../package.json");

const program = process.platform === "win32" ? "cofferdam.exe" : "cofferdam";
// The static program runs with every C library, so it comes first where both are installed.
const libraries = process.platform === "linux" ? ["-musl", "-glibc"] : [""];
const packages = libraries.map(
  (library) => `@cofferdam/${process.platform}-${process.arch}${library}`,
);

function findProgram() {
  for (const name of packages) {
    try {
      return require.resolve(`${name}/bin/${program}`);
    } catch (error) {
      if (error.code !== "MODULE_NOT_FOUND") throw error;
    }
  }
  return undefined;
}

const path = findProgram();
if (path === undefined) {
  const install = packages.map((name) => `\`npm install ${name}@${version}\``).join(" or ");
  console.error(
    `error: expected the package ${packages.join(" or ")} beside this one, found none: install ` +
      `it with ${install}, or install cofferdam again on this platform without \`--omit=optional\``,
  );
  process.exit(5);
}

let child;
// A terminal sends Ctrl-C to both processes, a client only to this one. The listeners come first, so
// that no signal ends this process while the program starts.
const forward = (signal) => child.kill(signal);
process.on("SIGINT", process.stdin.isTTY ? () => {} : forward);
process.on("SIGTERM", forward);
process.on("SIGHUP", forward);

child = spawn(path, process.argv.slice(2), { stdio: "inherit", windowsHide: true });
child.on("error", (error) => {
  console.error(`error: cannot start ${path}: ${error.message}`);
  process.exit(5);
});
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
