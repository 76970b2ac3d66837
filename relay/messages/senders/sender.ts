import type { MessageContent } from '../../../deliveries/messages/message.ts'

/** What is handed to a provider. */
export interface Outgoing extends MessageContent {
  /** The same at every attempt, so that a provider can tell a repetition. */
  id: string
  type: string
}

export type SendResult =
  | { sent: true }
  | {
      sent: false
      /**
       * `message`: this one will never be taken. `later`: this one, but not now. `provider`: nothing can be sent by
       * this provider now.
       */
      because: 'message' | 'later' | 'provider'
      /** A category that holds nothing a provider said: `smtp_550`, `timeout`, … */
      error: string
      /** What the provider asks for, in ms. */
      retryAfterMs?: number
    }

/** One provider, as it is configured now. */
export interface Sender {
  /** Never rejects. `timeoutMs`: after that the provider is not heard any more. */
  send(message: Outgoing, timeoutMs: number): Promise<SendResult>
  /** Ends connections, those in use too. */
  close(): void
}

export const failure = (
  because: 'message' | 'later' | 'provider',
  error: string,
  retryAfterMs?: number,
): SendResult => ({
  sent: false,
  because,
  error,
  ...(retryAfterMs !== undefined && { retryAfterMs }),
})

/** The categories of errors that connections end with. */
const networkErrors: Readonly<Record<string, string>> = {
  TARGET_NOT_ALLOWED: 'not_allowed',
  ENOTFOUND: 'dns',
  EAI_AGAIN: 'dns',
  EDNS: 'dns',
  ETLS: 'tls',
  ETIMEDOUT: 'timeout',
  ETIME: 'timeout',
  UND_ERR_CONNECT_TIMEOUT: 'timeout',
  UND_ERR_HEADERS_TIMEOUT: 'timeout',
  UND_ERR_BODY_TIMEOUT: 'timeout',
}
const tlsErrors = /^(ERR_TLS|ERR_SSL|CERT_|DEPTH_|SELF_SIGNED|UNABLE_TO)/

export const networkErrorOf = (error: unknown): string => {
  const { code = '', name = '', message = '', cause } = (error ?? {}) as NodeJS.ErrnoException
  const known = networkErrors[code]
  if (known !== undefined) return known
  if (tlsErrors.test(code) || /certificate|altnames|\b(tls|ssl)\b/i.test(message)) return 'tls'
  if (name === 'TimeoutError' || name === 'AbortError') return 'timeout'
  return cause === undefined ? 'connection' : networkErrorOf(cause)
}
