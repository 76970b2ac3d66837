import { fileURLToPath } from 'node:url'
import { type ChannelCredentials, Client, credentials, type ServiceError } from '@grpc/grpc-js'
import { loadSync, type ServiceDefinition } from '@grpc/proto-loader'

const protos = fileURLToPath(new URL('../../gateway/ext-authz/proto', import.meta.url))
const definitions = loadSync(['envoy/service/auth/v3/external_auth.proto', 'grpc/health/v1/health.proto'], {
  includeDirs: [protos],
  longs: Number,
  defaults: true,
})
const authorization = definitions['envoy.service.auth.v3.Authorization'] as ServiceDefinition
const health = definitions['grpc.health.v1.Health'] as ServiceDefinition

/** What a check answers, in short. */
export interface Checked {
  allowed: boolean
  /** `google.rpc.Code`. */
  code: number
  /** Of a denial. */
  status?: number
  /** To be set on the request, or of the denial; each replaces what is there. */
  headers: Record<string, string>
  removed: string[]
  removedParameters: string[]
  body?: Record<string, unknown>
  // biome-ignore lint/suspicious/noExplicitAny: any JSON
  metadata: Record<string, any>
}

interface Option {
  header: { key: string; value: string }
  append?: object | null
  appendAction: string | number
}

// biome-ignore lint/suspicious/noExplicitAny: a message of google.protobuf.Struct
const plain = (value: any): unknown =>
  value.structValue
    ? plainFields(value.structValue.fields)
    : value.listValue
      ? value.listValue.values.map(plain)
      : (value.stringValue ?? value.numberValue ?? value.boolValue ?? null)
const plainFields = (fields: Record<string, unknown> = {}) =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, plain(value)]))

// biome-ignore lint/suspicious/noExplicitAny: a message of Envoy
const shortly = (response: any): Checked => {
  const { status, okResponse, deniedResponse, dynamicMetadata } = response
  const options: Option[] = (okResponse ?? deniedResponse).headers
  for (const { append, appendAction } of options) {
    if (append || (appendAction !== 2 && appendAction !== 'OVERWRITE_IF_EXISTS_OR_ADD')) throw new Error('appends')
  }
  return {
    // As Envoy reads it.
    allowed: status.code === 0 && Boolean(okResponse),
    code: status.code,
    ...(deniedResponse && { status: deniedResponse.status.code, body: JSON.parse(deniedResponse.body) }),
    headers: Object.fromEntries(options.map(({ header: { key, value } }) => [key, value])),
    removed: okResponse?.headersToRemove ?? [],
    removedParameters: okResponse?.queryParametersToRemove ?? [],
    metadata: plainFields(dynamicMetadata?.fields),
  }
}

export interface AskedRequest {
  method?: string
  path?: string
  host?: string
  scheme?: string
  headers?: Record<string, string>
  /** Where Envoy's client connects from. */
  address?: string
  /** Other members of the HTTP attributes. */
  http?: Record<string, unknown>
  /** Other members of the attributes. */
  attributes?: Record<string, unknown>
}

/** What Envoy sends about a request: pseudo-header fields among the others, and the id that it gives. */
export const checkOf = (asked: AskedRequest = {}): object => {
  const { method = 'GET', path = '/', host = 'api.test', scheme = 'https', address = '203.0.113.9' } = asked
  const pseudo = { ':method': method, ':path': path, ':authority': host, ':scheme': scheme }
  return {
    attributes: {
      source: { address: { socketAddress: { address, portValue: 4711 } } },
      request: {
        time: { seconds: 1, nanos: 0 },
        http: {
          ...{ id: '1', method, path, host, scheme, size: -1, protocol: 'HTTP/1.1' },
          headers: { ...pseudo, 'x-forwarded-proto': scheme, ...asked.headers },
          ...asked.http,
        },
      },
      ...asked.attributes,
    },
  }
}

/** A client of a gateway's listener for Envoy, made from Envoy's own definitions. */
export const connectExtAuthz = (
  port: number,
  channel: ChannelCredentials = credentials.createInsecure(),
  host = '127.0.0.1',
) => {
  const client = new Client(`${host}:${port}`, channel, {
    'grpc.enable_retries': 0,
    'grpc.use_local_subchannel_pool': 1,
  })
  const call = (service: ServiceDefinition, method: string, message: unknown, timeoutMs = 20_000) => {
    const { path, requestSerialize, responseDeserialize } = service[method]!
    // Bytes are sent as they are.
    const serialize = Buffer.isBuffer(message) ? (bytes: Buffer) => bytes : requestSerialize
    return new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        ...[path, serialize as (message: unknown) => Buffer, responseDeserialize, message],
        { deadline: Date.now() + timeoutMs },
        (error: ServiceError | null, answer: unknown) => (error ? reject(error) : resolve(answer)),
      )
    })
  }
  return {
    client,
    definition: authorization['Check']!,
    check: async (asked?: AskedRequest) => shortly(await call(authorization, 'Check', checkOf(asked))),
    /** A message as it is given, or its bytes. */
    send: async (message: object, timeoutMs?: number) =>
      shortly(await call(authorization, 'Check', message, timeoutMs)),
    health: async (service = '') => ((await call(health, 'Check', { service })) as { status: number }).status,
    close: () => client.close(),
  }
}

export type ExtAuthzClient = ReturnType<typeof connectExtAuthz>
