import type { HostBuiltin } from './index.ts'

/** Exact where a double is not: nanoseconds of our century need 61 bits. (V8 has it; TypeScript's library does not yet.) */
const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown }

export const timeBuiltins: Record<string, HostBuiltin> = {
  'time.now_ns': (_args, { nowNs }) => rawJSON(String(nowNs())),
}
