import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { runProcess } from '../support/process.ts'

const section = (id: number, ...content: number[]) => [id, content.length, ...content]
const zero = [0x44, 0, 0, 0, 0, 0, 0, 0, 0]
/** Calls the function it imports five thousand times, in one loop. */
const loop = [1, 1, 0x7f, 0x03, 0x40, ...zero, ...zero, 0x10, 0, 0x20, 0, 0x41, 1, 0x6a, 0x22, 0, 0x41, 0x88, 0x27]
const body = [...loop, 0x48, 0x0d, 0, 0x0b, 0x0b]
const wasm = [
  ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
  ...section(1, 2, 0x60, 2, 0x7c, 0x7c, 0, 0x60, 0, 0),
  ...section(2, 1, 0, 1, 0x66, 0, 0),
  ...section(3, 1, 1),
  ...section(7, 1, 1, 0x6c, 0, 1),
  ...section(10, 1, body.length, ...body),
]
const thread = `
  let calls = 0
  const imports = { '': { f: () => { calls += 1 } } }
  new WebAssembly.Instance(new WebAssembly.Module(Uint8Array.of(${wasm})), imports).exports.l()
  console.log(calls)`
const threadModule = JSON.stringify(`data:text/javascript,${encodeURIComponent(thread)}`)
const module = JSON.stringify(new URL('../../platform/worker-thread.ts', import.meta.url).href)

/** How many wrappers V8 compiled (its own log says), in a process that starts one thread. */
const wrappersOf = async (start: string): Promise<number> => {
  const folder = await mkdtemp(join(tmpdir(), 'surrogate-v8-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const log = join(folder, 'v8.log')
  const script = `import { Worker } from 'node:worker_threads'\n${start}`
  const logging = ['--log-code', '--no-logfile-per-isolate', `--logfile=${log}`]
  const options = ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', script]
  const { code, output } = await runProcess(process.execPath, [...logging, ...options], { cwd: folder })
  expect({ code, output: output.trim() }).toEqual({ code: 0, output: '5000' })
  return (await readFile(log, 'utf8')).split('\n').filter((line) => line.includes('wasm-to-js')).length
}

test('threads share no wrappers for what WebAssembly calls: one that was being freed could end the process', async () => {
  expect(await wrappersOf(`new Worker(new URL(${threadModule}))`)).toBeGreaterThan(0)
  const ours = `const { startWorkerThread } = await import(${module})\nstartWorkerThread(new URL(${threadModule}), {})`
  expect(await wrappersOf(ours)).toBe(0)
})
