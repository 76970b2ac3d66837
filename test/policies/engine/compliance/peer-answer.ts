import { Script } from 'node:vm'
import { loadPolicy } from '@open-policy-agent/opa-wasm'

const peerCase = 'surrogateComplianceCase'
const script = new Script(`${peerCase}()`)
/** Of a case, in ms: nothing else ends what does not end by itself. */
const atMost = 5_000

/** What `@open-policy-agent/opa-wasm` answers; undefined when no rule does. Rejects with whatever it throws. */
export const peerAnswer = async (question: {
  wasm: Uint8Array<ArrayBuffer>
  data: unknown
  /** JSON. */
  input: string | undefined
  entrypoint: string
}): Promise<unknown> => {
  const { wasm, data, input, entrypoint } = question
  const policy = await loadPolicy(wasm)
  policy.setData(data as object)
  // As bytes, which it hands on as they are.
  const given = input === undefined ? undefined : (new TextEncoder().encode(input).buffer as ArrayBuffer)
  Object.assign(globalThis, { [peerCase]: () => policy.evaluate(given, entrypoint) })
  const answer = script.runInThisContext({ timeout: atMost }) as { result: unknown }[]
  return answer[0]?.result
}
