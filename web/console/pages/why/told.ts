/** TEMPORARY types until generated */
export interface ExplainedRule {
  name: string
  file: string
  line: number
  held: boolean
  stopped?: { line: number; text: string }
  variables: Record<string, unknown>
  times: number
  rules: ExplainedRule[]
}
export type Remedy =
  | { change: 'scope'; scopes: string[] }
  | { change: 'no-actor' }
  | { change: 'route'; route: string; method: string; host: string; path: string }
export interface NearMiss {
  route: string
  because: string
  differences: unknown[]
}
export interface TokenOfWhy {
  issuer?: string
  subject?: string
  actors?: string[]
  client?: string
  organization?: string
  audience?: string[]
  scopes?: string[]
  sid?: string
  acr?: string
  expires?: number
  bound?: string
}
