import { createWire } from './wire.ts'

/**
 * A request now and then beside a load, one at a time, answered with its status. `fetch` would cost a millisecond each
 * time, which those who are measured on the same processors notice.
 */
export type Asker = { ask: (path: string, headers?: string) => Promise<number>; close: () => void }

/** `headers`: whole lines. */
export const createAsker = (port: number): Asker => {
  const wire = createWire(port)
  return {
    ask: async (path, headers = '') =>
      (await wire.send(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n${headers}\r\n`)).status,
    close: wire.close,
  }
}
