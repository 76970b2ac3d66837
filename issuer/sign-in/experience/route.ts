import type { z } from 'zod'
import type { EventRequest } from '../../../events/outbox.ts'
import type { Query } from '../../../platform/database/database.ts'
import type { ProblemCode } from '../../base/errors/problems.ts'
import type { SignInExperience } from '../../directory/sign-in-experience/sign-in-experience.ts'
import type { Interaction } from '../../interaction/interaction-store.ts'
import type { InteractionOperations } from '../../interaction/operations.ts'
import type { Standing } from '../../interaction/standing.ts'
import type { Visitor } from '../../interaction/visitor.ts'
import type { Locale } from '../../pages/index.ts'

/** A call of the Experience API: what it is about, and what it may use. */
export interface Call<Body = unknown> {
  query: Query
  operations: InteractionOperations
  settings: SignInExperience
  /** Where browsers reach the issuer. */
  baseUrl: string
  /** Of this browser. Open, but for a route that `takesFinished`. */
  interaction: Interaction
  /** Of the page that asks, where a browser says so. */
  pageOrigin: string | undefined
  visitor: Visitor & { browser: string }
  /** Of the path, as the route's `params` says. */
  params: Record<string, string>
  /** Of a GET: its query. */
  body: Body
  /** What events tell of this request. */
  request: EventRequest
  requestId: string
  /** Of messages. */
  locale: Locale
  /** What is due, of the interaction as it was when the call came. */
  standing(): Promise<Standing>
  /** Notes what came of an attempt to prove something. */
  count(proof: string, outcome: string): void
}

export interface CallResult {
  /** Instead of the route's. */
  status?: number
  body?: unknown
  setCookies?: readonly string[]
}

/** An operation of the Experience API as data. */
export interface ExperienceRoute<Body extends z.ZodType = z.ZodType> {
  method: 'GET' | 'POST' | 'PUT'
  /** Below `/api/experience`; parameters as `:name`. */
  path: string
  params?: z.ZodObject<Record<string, z.ZodString>>
  /** Unique, camelCase, a verb first: `submitInteraction`. */
  operationId: string
  summary: string
  /** Of a GET: its query. */
  body?: Body
  /** Of success. */
  status: number
  /** It answers 201 instead when it makes something new. */
  mayCreate?: true
  /** The body of success; absent when there is none. */
  response?: z.ZodType
  /** The problems that callers meet here, besides those of every call. */
  problems?: readonly ProblemCode[]
  /** It answers for some seconds after the interaction is finished. */
  takesFinished?: true
  /** It may hash a password. */
  hashes?: true
  handle(call: Call<z.output<Body>>): Promise<CallResult> | Promise<CallResult | undefined> | Promise<void>
}

/** Infers the type of the body from the schema beside the handler. */
export const experienceRoute = <Body extends z.ZodType = z.ZodType<Record<string, never>>>(
  definition: ExperienceRoute<Body>,
): ExperienceRoute => definition as unknown as ExperienceRoute
