import { Pool } from 'undici'
import { connectForHttp1 } from './status-line.ts'
import type { UpstreamTls } from './upstream-tls.ts'

/** Opens connections to one server. `address`: where to connect, in the place of looking up the name in `origin`. */
export type OpenPool = (origin: string, address?: string) => Pool

/** @param connectTimeout ms */
export const createOpenPool =
  ({ connectTimeout, tls }: { connectTimeout: number; tls: UpstreamTls | undefined }): OpenPool =>
  (origin, address) =>
    new Pool(origin, {
      // One request on a connection at a time: no answer waits behind another, and undici repeats none by itself.
      pipelining: 1,
      allowH2: false,
      connect: connectForHttp1({ timeout: connectTimeout, tls, address }),
      headersTimeout: 0,
      bodyTimeout: 0,
      maxHeaderSize: 65_536,
    })
