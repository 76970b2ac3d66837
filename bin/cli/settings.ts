import { z } from 'zod'
import { originSetting } from '../../issuer/base/origin-setting.ts'
import { consoleEnvironment } from '../../issuer/console/console-settings.ts'
import { setting } from '../../platform/config.ts'
import { natsUrl } from '../../platform/nats/nats-url.ts'

/**
 * What each command reads from its environment. A setting of one part stands in that part's own `config.ts`; here
 * stands what the commands add: logging, addresses of listeners, the database, and where files are.
 * `docs/configuration.md` is held against these.
 */

const logLevel = z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
const databaseUrl = setting.url('postgres:', 'postgresql:')

const common = {
  /** The demo's default is `warn`, so that what it prints can be read. */
  LOG_LEVEL: logLevel.default('info'),
  HOST: setting.text().default('127.0.0.1'),
}
/** Without it events travel through the database. */
const nats = {
  NATS_URL: natsUrl().optional(),
  /** JWT and seed, as nsc makes it. */
  NATS_CREDS_FILE: setting.text().optional(),
}
const encryption = {
  /** 32 bytes in base64. */
  KEY_ENCRYPTION_KEY: setting.key(),
  KEY_ENCRYPTION_KEY_PREVIOUS: setting.key().optional(),
}
const policies = {
  /** The Rego compiler, when rules have to be compiled. Default: `opa` on the PATH, else the one npm brought. */
  OPA_BIN: setting.text().optional(),
}
/** The issuer's rules: a folder or a bundle. Default none: impersonation is the integrator's decision alone. */
const issuerPolicy = { POLICY_PATH: setting.text().optional(), ...policies }
/** What one evaluation of them may spend. */
const policyUnits = { POLICY_UNITS: setting.integer(1_000, 2_000_000_000).default(5_000_000) }
/** Rules about signing in that are compared with those in force. */
const shadowPolicy = { POLICY_SHADOW_PATH: setting.text().optional() }

/** Where mails of a service in development can be read. */
const outbox = {
  SURROGATE_DATA_DIR: setting.text().default('.surrogate'),
  MESSAGE_OUTBOX: setting.text().optional(),
}

/** What `surrogate login` keeps. */
const logins = { XDG_CONFIG_HOME: setting.text().optional() }

export const settings = {
  start: z.object({
    ...common,
    ...issuerPolicy,
    ...shadowPolicy,
    ...policyUnits,
    LOG_LEVEL: logLevel.optional(),
    SURROGATE_DATA_DIR: setting.text().default('.surrogate'),
    DATABASE_URL: databaseUrl.optional(),
    ...nats,
    PORT: setting.port().default(3001),
    GATEWAY_CONFIG: setting.text().optional(),
    /** The demo's gateway; otherwise GATEWAY_CONFIG says where it listens. */
    GATEWAY_PORT: setting.port().default(3000),
    DEMO_PORT: setting.port().default(3002),
    DEMO_WEB_PORT: setting.port().default(3003),
    ADMIN_PORT: setting.port().default(9300),
    NODE_ENV: setting.text().optional(),
  }),
  issuer: z.object({
    ...common,
    ...issuerPolicy,
    ...shadowPolicy,
    ...policyUnits,
    ...nats,
    DATABASE_URL: databaseUrl,
    ADMIN_PORT: setting.port().default(9301),
  }),
  gateway: z.object({
    LOG_LEVEL: common.LOG_LEVEL,
    ...policies,
    GATEWAY_CONFIG: setting.text().default('gateway.yaml'),
    /** From here on for `gateway inspect`: a token, or what one is obtained with. */
    INSPECTION_TOKEN: setting.secret().optional(),
    INSPECTION_CLIENT_ID: setting.text().optional(),
    INSPECTION_CLIENT_SECRET: setting.secret().optional(),
  }),
  /** Of `policy serve`. */
  policy: z.object({ LOG_LEVEL: common.LOG_LEVEL, ...policies }),
  relay: z.object({
    ...common,
    ...encryption,
    ...nats,
    DATABASE_URL: databaseUrl,
    ADMIN_PORT: setting.port().default(9302),
  }),
  migrate: z.object({ LOG_LEVEL: common.LOG_LEVEL, DATABASE_URL: databaseUrl }),
  keys: z.object({
    /** What it prints can be read when it logs only what goes wrong. */
    LOG_LEVEL: logLevel.default('warn'),
    SURROGATE_DATA_DIR: setting.text().default('.surrogate'),
    DATABASE_URL: databaseUrl.optional(),
    KEY_ENCRYPTION_KEY: setting.key().optional(),
    KEY_ENCRYPTION_KEY_PREVIOUS: setting.key().optional(),
  }),
  console: z.object({
    /** What it prints can be read when it logs only what goes wrong. */
    LOG_LEVEL: logLevel.default('warn'),
    SURROGATE_DATA_DIR: setting.text().default('.surrogate'),
    DATABASE_URL: databaseUrl.optional(),
    BASE_URL: originSetting.optional(),
    PORT: setting.port().default(3001),
    ...consoleEnvironment,
  }),
  token: z.object(logins),
  logout: z.object(logins),
  login: z.object({
    ...logins,
    LOGIN_PASSWORD: setting.secret().optional(),
    LOGIN_CLIENT_SECRET: setting.secret().optional(),
    /** From here on for `login explain`. What it prints can be read when it logs only what goes wrong. */
    LOG_LEVEL: logLevel.default('warn'),
    SURROGATE_DATA_DIR: setting.text().default('.surrogate'),
    DATABASE_URL: databaseUrl.optional(),
    ...issuerPolicy,
  }),
  messages: z.object(outbox),
  demo: z.object(outbox),
}
