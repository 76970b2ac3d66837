import { type MailServer, startMailServer } from '../../test/support/mail-server.ts'
import { answerCalls } from '../harness/calls.ts'

/** Who receives mail, over SMTP without TLS, and notes when each had arrived whole. */
let server: MailServer

answerCalls({
  start: async (): Promise<number> => {
    server = await startMailServer()
    return server.port
  },
  /** Once so many have arrived: when, in ms since the epoch, by recipient. */
  until: async (count: number): Promise<Record<string, number>> => {
    const received = await server.until(count)
    return Object.fromEntries(received.map(({ to, at }) => [to[0] ?? '', performance.timeOrigin + at]))
  },
  stop: () => server?.close(),
})
