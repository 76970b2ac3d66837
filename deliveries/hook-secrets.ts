import type { Envelope } from '../platform/envelope.ts'
import { randomAlphanumerics } from '../platform/ids.ts'

export const hookKeyContext = (hookId: string) => `hook-signing-key:${hookId}`
export const hookHeadersContext = (hookId: string) => `hook-headers:${hookId}`

/** The secrets of hooks at rest: sealed to the hook they belong to. The issuer seals, the relay opens. */
export const hookSecrets = (envelope: Envelope) => ({
  sealSigningKey: (hookId: string, key: string): Buffer => envelope.seal(key, hookKeyContext(hookId)),
  openSigningKey: (hookId: string, sealed: Buffer): string =>
    envelope.open(sealed, hookKeyContext(hookId)).toString('utf8'),
  sealHeaders: (hookId: string, headers: Record<string, string>): Buffer | null =>
    Object.keys(headers).length === 0 ? null : envelope.seal(JSON.stringify(headers), hookHeadersContext(hookId)),
  openHeaders: (hookId: string, sealed: Buffer | null): Record<string, string> =>
    sealed === null ? {} : JSON.parse(envelope.open(sealed, hookHeadersContext(hookId)).toString('utf8')),
})

/** 32 characters of [A-Za-z0-9]. */
export const newSigningKey = (): string => randomAlphanumerics(32)

/** The same key as Standard Webhooks libraries take it. */
export const webhookSecretOf = (signingKey: string): string => `whsec_${Buffer.from(signingKey).toString('base64')}`
