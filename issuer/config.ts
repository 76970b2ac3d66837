import { z } from 'zod'
import { type MessageConfig, messageConfigOf, messageSettings } from '../deliveries/messages/settings.ts'
import { loadConfig, setting } from '../platform/config.ts'
import { type TargetPolicyOptions, webhookTargetSettings } from '../platform/http/outbound.ts'
import { isPlainHttp } from '../platform/http/plain-http.ts'
import type { Secret } from '../platform/secret.ts'
import { StartupError } from '../platform/startup-error.ts'
import { originSetting } from './base/origin-setting.ts'
import { type RateLimits, rateLimitSettings } from './base/rate-limits/rate-limits.ts'
import { type CaptchaSettings, captchaEnvironment, captchaSettingsOf } from './captcha/captcha-settings.ts'
import type { SandboxSettings } from './claims/sandbox/open-sandbox.ts'
import { claimsFetchSettings } from './claims/sandbox/outbound-fetch.ts'
import {
  type ConsoleSettings,
  consoleEnvironment,
  consoleSettingsOf,
  gatewaysAreSafe,
  gatewaysEnvironment,
} from './console/console-settings.ts'
import type { BreachedPasswordsOptions } from './directory/users/password-policy/breached/open-breached-passwords.ts'
import { type Retention, retentionSettings } from './maintenance/retention.ts'
import { type SigningAlgorithmName, signingAlgorithmNames } from './tokens/keys/signing-algorithms.ts'

/** What the issuer is told by its environment. */
export interface IssuerConfig {
  host: string
  /** 0 picks a free port. */
  port: number
  /** Where clients reach the issuer, no slash at its end. Default `http://localhost:<port>`. */
  baseUrl: string | undefined
  /** Addresses or networks whose `X-Forwarded-For` is believed. */
  trustedProxies: readonly string[]
  /** 32 bytes each. */
  keyEncryptionKey: Uint8Array
  previousKeyEncryptionKey: Uint8Array | undefined
  signingAlgorithm: SigningAlgorithmName
  /** In seconds. */
  subjectTokenTtl: number
  /** Other names for the resource `{base_url}/api`. */
  managementApiIndicators: readonly string[]
  bootstrapClientId: string | undefined
  bootstrapClientSecret: Secret | undefined
  /** Which webhook URLs may be registered; the relay holds the same. Default: public addresses over https. */
  webhookTargets?: Pick<TargetPolicyOptions, 'allowedNetworks' | 'allowHttp'> | undefined
  /** How long a refresh token may be used again after the next took its place, in seconds. */
  refreshTokenLeeway: number
  /** Open interactions of one address; 0: any number. */
  interactionsPerAddress: number
  /** In ms. Default: `retentionDefaults`. */
  retention?: Retention | undefined
  /** Default: `rateLimitDefaults`. */
  rateLimits?: RateLimits | undefined
  /** Default: `captchaDefaults`. */
  captcha?: CaptchaSettings | undefined
  /** Lists of passwords that were in a breach. Default: none. */
  breachedPasswords?: BreachedPasswordsOptions | undefined
  /** Default: `consoleDefaults`. */
  console?: ConsoleSettings | undefined
  /** How scripts of custom claims are run. */
  claims?: SandboxSettings | undefined
  /** What sends to people besides connectors; relays hold the same. Default: nothing. */
  messages?: MessageConfig | undefined
}

const subjectTokenTtl = setting
  .duration()
  .refine((ms) => ms >= 1_000 && ms <= 3_600_000 && ms % 1_000 === 0, 'must be between 1s and 1h, in whole seconds')
  .transform((ms) => ms / 1_000)

const leeway = setting
  .duration()
  .refine((ms) => ms <= 60_000 && ms % 1_000 === 0, 'must be at most 60s, in whole seconds')
  .transform((ms) => ms / 1_000)

const ownSettings = z.object({
  HOST: setting.text().default('127.0.0.1'),
  PORT: setting.port().default(3001),
  BASE_URL: originSetting.optional(),
  /** Default false: `https`, unless the host is this machine. */
  BASE_URL_ALLOW_HTTP: setting.flag().default(false),
  TRUSTED_PROXIES: setting.list().default([]),
  KEY_ENCRYPTION_KEY: setting.key(),
  KEY_ENCRYPTION_KEY_PREVIOUS: setting.key().optional(),
  SIGNING_ALGORITHM: z.enum(signingAlgorithmNames).default('ES256'),
  SUBJECT_TOKEN_TTL: subjectTokenTtl.default(600),
  REFRESH_TOKEN_LEEWAY: leeway.default(10),
  INTERACTIONS_PER_ADDRESS: setting.integer(0, 1_000_000).default(300),
  MANAGEMENT_API_INDICATORS: setting.list().default([]),
  ...retentionSettings,
  ...rateLimitSettings,
  // Characters that mean the same with and without form-encoding, so that every client's Basic header is read alike.
  BOOTSTRAP_CLIENT_ID: z
    .string()
    .regex(/^[\w.~-]{1,21}$/, 'must be 1 to 21 characters of A-Z a-z 0-9 . _ ~ -')
    .optional(),
  // It is stored as a plain SHA-256, so it must not be guessable.
  BOOTSTRAP_CLIENT_SECRET: z.string().min(32, 'must be at least 32 characters').pipe(setting.secret()).optional(),
  ...webhookTargetSettings,
  ...captchaEnvironment,
  ...consoleEnvironment,
  ...gatewaysEnvironment,
  BREACHED_PASSWORDS_FILE: setting.text().optional(),
  BREACHED_PASSWORDS_URL: setting
    .url('https:', 'http:')
    .refine((url) => !/[?#]|\/$/.test(url), 'must have no query, no fragment and no slash at its end')
    .optional(),
  CLAIMS_WORKERS: setting.integer(1, 64).optional(),
  ...claimsFetchSettings,
  ...messageSettings,
})

/** The issuer's own settings; `DATABASE_URL` and the like are read by the commands. */
export const issuerSettings = ownSettings
  .refine(({ BASE_URL, BASE_URL_ALLOW_HTTP }) => BASE_URL_ALLOW_HTTP || !isPlainHttp(BASE_URL), {
    path: ['BASE_URL'],
    message:
      'must be https: passwords, cookies and tokens would cross networks in clear (if it is meant: BASE_URL_ALLOW_HTTP=true)',
    // Also beside other problems, so that all are told at once.
    when: () => true,
  })
  .refine(gatewaysAreSafe.holds, gatewaysAreSafe.otherwise)

/** Reads and checks the environment. Throws `StartupError` that names every problem at once. */
export const loadIssuerConfig = (environment: Record<string, string | undefined>): IssuerConfig => {
  const settings = loadConfig(issuerSettings, environment)
  if (settings.BOOTSTRAP_CLIENT_SECRET && settings.BOOTSTRAP_CLIENT_ID === undefined) {
    throw new StartupError('BOOTSTRAP_CLIENT_SECRET is set without BOOTSTRAP_CLIENT_ID.', {
      hint: 'Set both, or neither: then an application is made and its credentials are printed once.',
    })
  }
  return {
    host: settings.HOST,
    port: settings.PORT,
    baseUrl: settings.BASE_URL,
    trustedProxies: settings.TRUSTED_PROXIES,
    keyEncryptionKey: settings.KEY_ENCRYPTION_KEY,
    previousKeyEncryptionKey: settings.KEY_ENCRYPTION_KEY_PREVIOUS,
    signingAlgorithm: settings.SIGNING_ALGORITHM,
    subjectTokenTtl: settings.SUBJECT_TOKEN_TTL,
    refreshTokenLeeway: settings.REFRESH_TOKEN_LEEWAY,
    interactionsPerAddress: settings.INTERACTIONS_PER_ADDRESS,
    managementApiIndicators: settings.MANAGEMENT_API_INDICATORS,
    bootstrapClientId: settings.BOOTSTRAP_CLIENT_ID,
    bootstrapClientSecret: settings.BOOTSTRAP_CLIENT_SECRET,
    retention: {
      subjectTokens: settings.RETENTION_SUBJECT_TOKENS,
      opaqueTokens: settings.RETENTION_OPAQUE_TOKENS,
      sessions: settings.RETENTION_SESSIONS,
      signInSessions: settings.RETENTION_SIGN_INS,
      authorizations: settings.RETENTION_SIGN_INS,
      logs: settings.RETENTION_LOGS,
      revocations: settings.RETENTION_REVOCATIONS,
      idempotency: settings.RETENTION_IDEMPOTENCY,
    },
    captcha: captchaSettingsOf(settings),
    console: consoleSettingsOf(settings),
    rateLimits: {
      failedAuthentications: settings.RATE_LIMIT_FAILED_AUTHENTICATIONS,
      tokens: settings.RATE_LIMIT_TOKENS,
      tokensPerAddress: settings.RATE_LIMIT_TOKENS_PER_ADDRESS,
      management: settings.RATE_LIMIT_MANAGEMENT,
    },
    breachedPasswords: { file: settings.BREACHED_PASSWORDS_FILE, url: settings.BREACHED_PASSWORDS_URL },
    claims: {
      workers: settings.CLAIMS_WORKERS,
      fetch: {
        hosts: settings.CLAIMS_FETCH_HOSTS,
        allowedNetworks: settings.CLAIMS_FETCH_ALLOWED_NETWORKS,
        allowHttp: settings.CLAIMS_FETCH_ALLOW_HTTP,
      },
    },
    messages: messageConfigOf(settings),
    webhookTargets: { allowedNetworks: settings.WEBHOOK_ALLOWED_NETWORKS, allowHttp: settings.WEBHOOK_ALLOW_HTTP },
  }
}
