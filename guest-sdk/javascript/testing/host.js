/** A host for tests: the interfaces of `wit/` with the grants of a test. */

import { returned } from "../content.js";
import { ToolFailure } from "../failure.js";
import { writeJson } from "../numbers.js";
import { Tool } from "../tool.js";
import { refusal } from "./refusal.js";
import { MemoryStores } from "./stores.js";

const UNLIMITED_MS = Number.MAX_SAFE_INTEGER;

export class TestHost {
  #stores;
  progress = [];
  logged = [];

  constructor(options, callOther) {
    this.#stores = new MemoryStores(options.stores ?? {}, options.readOnly ?? []);
    this.interfaces = {
      call: this.#call(options),
      client: this.#client(options),
      files: this.#stores,
      secrets: secrets(options.secrets ?? {}),
      toolbox: toolbox(options.tools ?? {}, callOther),
    };
  }

  file(store, path) {
    return this.#stores.text(store, path);
  }

  #call({ id = "test", session, timeLeftMs = UNLIMITED_MS, cancelled = () => false }) {
    return {
      id: () => id,
      session: () => session ?? null,
      timeLeftMs: () => timeLeftMs,
      cancelled,
      progress: (done, total, message) => this.progress.push([done, total ?? undefined, message ?? undefined]),
    };
  }

  #client({ answer }) {
    return {
      canAsk: () => answer !== undefined,
      ask(questions) {
        if (answer === undefined) throw refusal({ tag: "unsupported" });
        return questions.map((question) => answered(question, answer));
      },
      log: (level, message) => this.logged.push([level, message]),
    };
  }
}

function answered({ name, request: { tag, val } }, answer) {
  const given = { kind: tag, name: name ?? undefined };
  switch (tag) {
    case "form": {
      const reply = answer({ ...given, message: val.message, schema: JSON.parse(val.schema) });
      return { tag: reply.outcome, val: reply.outcome === "accepted" ? JSON.stringify(reply.value) : undefined };
    }
    case "sample":
      return { tag: "message", val: JSON.stringify(answer({ ...given, parameters: JSON.parse(val) })) };
    default:
      return { tag: "roots", val: answer(given) };
  }
}

function secrets(values) {
  return {
    get(name) {
      if (!Object.hasOwn(values, name)) throw refusal("access-denied");
      return values[name];
    },
  };
}

function toolbox(tools, callOther) {
  const found = (name) => {
    if (!Object.hasOwn(tools, name)) throw refusal({ tag: "unknown-tool" });
    return tools[name];
  };
  return {
    listTools: () => Object.entries(tools).map(([name, tool]) => listed(name, tool)),
    callTool(name, argumentsJson) {
      const tool = found(name);
      try {
        return returned(callOther(tool, JSON.parse(argumentsJson)));
      } catch (error) {
        throw refusal({ tag: "failed", val: failure(error) });
      }
    },
  };
}

function listed(name, tool) {
  const { description = "", parameters = {}, annotations = {} } = tool instanceof Tool ? tool : {};
  return { name, description, inputSchema: writeJson(parameters), annotations };
}

function failure(error) {
  if (!(error instanceof ToolFailure)) return { message: `${error.name}: ${error.message}` };
  const { message, suggestion, transient, value } = error;
  return { message, suggestion, transient, value: value === undefined ? undefined : JSON.stringify(value) };
}
