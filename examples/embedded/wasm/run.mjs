// run.mjs - labels trees by tree_lstm.c in WebAssembly:
//
//     clang --target=wasm32 -O3 -mbulk-memory -nostdlib -Iwasm -I. -Wl,--no-entry,--export=label_of,--export=__heap_base -o net.wasm tree_lstm.c net.c
//     node wasm/run.mjs net.wasm '(0 (0 (0 MAX) (0 3)) (0 4))'
import { readFileSync } from "node:fs";

const [path, ...trees] = process.argv.slice(2);
const { instance } = await WebAssembly.instantiate(readFileSync(path));
const { memory, label_of, __heap_base } = instance.exports;
for (const tree of trees) {
  const text = new TextEncoder().encode(tree + "\0"), at = __heap_base.value;
  if (at + text.length > memory.buffer.byteLength) memory.grow(1 + (text.length >> 16));
  new Uint8Array(memory.buffer, at, text.length).set(text);
  console.log(label_of(at));
}
