import { fileURLToPath } from 'node:url'
import type { ServiceDefinition } from '@grpc/proto-loader'
import { assetUrl } from '../../platform/module-url.ts'
import { CheckedRequest, type CheckRequest } from '../request/checked-request.ts'
import { plainAddress } from '../request/client-address.ts'
import { CheckAnswer } from './check-answer.ts'
import { createGrpcServer, type GrpcServer, grpcStatus, type UnaryCall } from './grpc-server.ts'

const service = 'envoy.service.auth.v3.Authorization'

/** In bytes: a body of Envoy's usual 1 MiB, and the header fields; the name of a service. */
const largest = { check: 2_097_152, health: 1_024 }

const settings = {
  // As many as Envoy asks at once, unless it is told otherwise: each beyond counts as an attack, and after a hundred of
  // them Node ends the connection. Calls that Envoy has given up count until they are over here.
  maxConcurrentStreams: 1_000,
  // Node's default is 10.
  maxSessionMemory: 32,
  keepAlive: { interval: 60_000, timeout: 20_000 },
}

/** Loads what reads the messages: only to be called when it is configured. */
export const createExtAuthzServer = async (parts: {
  check: (request: CheckedRequest, answer: CheckAnswer) => void
  /** Whether checks that come from this address are read. `check` refuses others, whatever they say. */
  trusts: (address: string) => boolean
  /** Whether decisions can be given now; for the health service. */
  serving: () => boolean | Promise<boolean>
}): Promise<GrpcServer> => {
  const { load } = await import('@grpc/proto-loader')
  const definitions = await load(['envoy/service/auth/v3/external_auth.proto', 'grpc/health/v1/health.proto'], {
    includeDirs: [fileURLToPath(assetUrl('./proto', import.meta.url))],
    longs: Number,
  })
  const messagesOf = (name: string) => (definitions[name] as ServiceDefinition)['Check']!

  const check = (message: unknown, call: UnaryCall): void => {
    const request = new CheckedRequest(message as CheckRequest, plainAddress(call.peer))
    const answer = new CheckAnswer(request, call.reply)
    call.whenOver(() => answer.destroy())
    parts.check(request, answer)
  }
  const health = async (message: unknown, call: UnaryCall): Promise<void> => {
    const { service: asked = '' } = message as { service?: string }
    if (asked !== '' && asked !== service) return call.fail(grpcStatus.NOT_FOUND, 'unknown service')
    call.reply({ status: (await parts.serving()) ? serving : notServing })
  }
  return createGrpcServer(
    [
      {
        ...messagesOf(service),
        largestMessage: largest.check,
        mayAsk: (peer) => parts.trusts(plainAddress(peer)),
        handle: check,
      },
      {
        ...messagesOf('grpc.health.v1.Health'),
        largestMessage: largest.health,
        handle: (...asked) => void health(...asked),
      },
    ],
    settings,
  )
}

/** `HealthCheckResponse.ServingStatus`. */
const serving = 1
const notServing = 2
