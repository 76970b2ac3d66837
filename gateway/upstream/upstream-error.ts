import { errors } from 'undici'
import { AppError } from '../../platform/problem.ts'
import { type ProblemCode, problem } from '../refusals/problems.ts'

/** What an error of undici or of the network means for the caller. */
const meanings: Record<string, ProblemCode> = {
  UND_ERR_CONNECT_TIMEOUT: 'upstream_timeout',
  ETIMEDOUT: 'upstream_timeout',
  UND_ERR_HEADERS_OVERFLOW: 'upstream_protocol_error',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'upstream_protocol_error',
  ERR_INVALID_CHAR: 'upstream_protocol_error',
  ERR_HTTP_INVALID_STATUS_CODE: 'upstream_protocol_error',
  UND_ERR_INVALID_ARG: 'server.error',
}

export const upstreamError = (cause: Error): AppError => {
  if (cause instanceof AppError) return cause
  const { code = '' } = cause as NodeJS.ErrnoException
  const otherwise = cause instanceof errors.HTTPParserError ? 'upstream_protocol_error' : 'upstream_unavailable'
  return problem(meanings[code] ?? otherwise, { cause })
}

const failures = new Set<string>([
  'upstream_unavailable',
  'upstream_protocol_error',
  'upstream_timeout',
] satisfies ProblemCode[])

/** Whether it is the upstream that failed. */
export const isUpstreamFailure = ({ code }: AppError): boolean => failures.has(code)

/** Of this machine, which can open no more files, connections or ports: no target is to blame. */
const ownTroubles = new Set(['EMFILE', 'ENFILE', 'EADDRNOTAVAIL', 'ENOBUFS', 'ENOMEM'])

export const isOwnTrouble = ({ code = '' }: NodeJS.ErrnoException): boolean => ownTroubles.has(code)
