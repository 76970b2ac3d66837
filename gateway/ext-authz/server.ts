import type { Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { ServiceDefinition, sendUnaryData, UntypedHandleCall } from '@grpc/grpc-js'
import { assetUrl } from '../../platform/module-url.ts'
import { CheckedRequest, type CheckRequest } from '../request/checked-request.ts'
import { plainAddress } from '../request/client-address.ts'
import { CheckAnswer } from './check-answer.ts'
import type { CheckResponse } from './messages.ts'

/** `envoy.service.auth.v3.Authorization` and `grpc.health.v1.Health`, on connections that others accept. */
export interface ExtAuthzServer {
  /** Speaks HTTP/2 on a connection that nobody has read from. */
  serve(socket: Socket): void
  /** No further calls on the connections that are open now; breaks off what is left after `graceMs`. */
  drain(graceMs: number): void
}

const service = 'envoy.service.auth.v3.Authorization'

/** Of one message, in bytes: a body of Envoy's usual 1 MiB, and the header fields. */
const largestMessage = 2_097_152

const options = {
  'grpc.max_receive_message_length': largestMessage,
  // As of the public listener; Envoy opens further connections.
  'grpc.max_concurrent_streams': 100,
  // MB, of one connection, beyond which its calls are refused. Node's default is 10, that of this library no limit.
  'grpc-node.max_session_memory': 32,
  // Ends connections whose other side is gone, or has never spoken.
  'grpc.keepalive_time_ms': 60_000,
  'grpc.keepalive_timeout_ms': 20_000,
  'grpc.enable_channelz': 0,
}

/** Loads gRPC: only to be called when it is configured. */
export const createExtAuthzServer = async (parts: {
  check: (request: CheckedRequest, answer: CheckAnswer) => void
  /** Whether decisions can be given now; for the health service. */
  serving: () => boolean | Promise<boolean>
}): Promise<ExtAuthzServer> => {
  const [grpc, { load }] = await Promise.all([import('@grpc/grpc-js'), import('@grpc/proto-loader')])
  const definitions = await load(
    [`${service.replaceAll('.', '/').replace('Authorization', 'external_auth')}.proto`, 'grpc/health/v1/health.proto'],
    {
      includeDirs: [fileURLToPath(assetUrl('./proto', import.meta.url))],
      longs: Number,
    },
  )
  const definitionOf = (name: string) => definitions[name] as ServiceDefinition
  const server = new grpc.Server(options)

  const check = (call: Call<CheckRequest>, callback: sendUnaryData<CheckResponse>): void => {
    const peer = call.getPeer()
    const request = new CheckedRequest(call.request, plainAddress(peer.slice(0, peer.lastIndexOf(':'))))
    const answer = new CheckAnswer(request, (response) => callback(null, response))
    // Also when its deadline is over.
    call.once('cancelled', () => answer.destroy())
    parts.check(request, answer)
  }
  server.addService(definitionOf(service), { Check: check as UntypedHandleCall })

  const health = async (call: Call<{ service?: string }>, callback: sendUnaryData<{ status: number }>) => {
    const { service: asked = '' } = call.request
    if (asked !== '' && asked !== service) return callback({ code: grpc.status.NOT_FOUND, details: 'unknown service' })
    callback(null, { status: (await parts.serving()) ? serving : notServing })
  }
  server.addService(definitionOf('grpc.health.v1.Health'), { Check: health as UntypedHandleCall })

  const injector = server.createConnectionInjector(grpc.ServerCredentials.createInsecure())
  return { serve: (socket) => injector.injectConnection(socket), drain: (graceMs) => injector.drain(graceMs) }
}

interface Call<Message> {
  request: Message
  getPeer(): string
  once(event: 'cancelled', listener: () => void): unknown
}

/** `HealthCheckResponse.ServingStatus`. */
const serving = 1
const notServing = 2
