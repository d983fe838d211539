// Only checked by `tsc -p tests`, never run: types of tools that TypeScript must know, and errors
// that it must report.
import { type Infer, RequestDenied, ToolFailure, plugin, s, tool } from "cofferdam";
import { askForm } from "cofferdam/client";
import { store } from "cofferdam/files";
import { call } from "cofferdam/testing";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const equal = <A, B>(_: Equal<A, B>) => {};

const item = s.object({ sku: s.string(), quantity: s.integer().default(1) });
equal<Infer<typeof item>, { sku: string; quantity: number }>(true);

const made = tool({
  name: "t",
  description: "T.",
  parameters: s.object({
    text: s.string("A text.").min(1),
    maybe: s.boolean().optional(),
    nothing: s.number().nullable(),
    choice: s.enum(["a", "b"]),
    items: s.array(item),
    map: s.map(s.int64()),
  }),
  run(args) {
    equal<
      typeof args,
      {
        text: string;
        nothing: number | null;
        choice: "a" | "b";
        items: { sku: string; quantity: number }[];
        map: Record<string, number | bigint>;
        maybe?: boolean;
      }
    >(true);
    // @ts-expect-error There is no such parameter.
    args.other;
    return args.items.map(({ sku }) => sku);
  },
});

plugin(made, tool({ name: "u", description: "U.", parameters: { type: "object", properties: {} }, run: () => 1 }));
void call(made, { text: "x" });
// @ts-expect-error The text is a string.
void call(made, { text: 1 });
// @ts-expect-error A choice that there is not as a default.
s.enum(["a", "b"]).default("c");
// @ts-expect-error There is no such option.
new ToolFailure("x", { hint: "y" });
// @ts-expect-error A description is missing.
tool({ name: "v", run: () => 1 });

const bytes: Uint8Array = store("data").read("a");
void bytes;
const reply = askForm("?", s.object({ really: s.boolean() }));
if (reply.outcome === "accepted") equal<typeof reply.value.really, boolean | undefined>(true);

tool({
  name: "w",
  description: "W.",
  group: "web",
  async run() {
    const url = new URL("?a=b", "https://example.com");
    const body = ReadableStream.from([new Uint8Array(1)]);
    const response = await fetch(url, { body, duplex: "half", method: "POST", signal: AbortSignal.timeout(1) });
    equal<typeof response.status, number>(true);
    const copy = response.clone().body;
    if (copy !== null) for await (const chunk of copy) equal<typeof chunk, Uint8Array<ArrayBuffer>>(true);
    clearTimeout(setTimeout((a: number) => void a, 1, 2));
    // @ts-expect-error A method is a string.
    void fetch(url, { method: 1 });
    return [...response.headers, ...url.searchParams];
  },
});
const isDenied = (error: unknown) => error instanceof TypeError && error.cause instanceof RequestDenied;
void isDenied;
