/** What a person agreed to, as the policy sees it and as it is kept with the subject token. Absent limits: none. */
export interface Approval {
  /** Of the request. */
  id: string
  /** In seconds since 1970. */
  at: number
  scopes?: string[]
  /** In seconds. */
  maxTtl?: number
  readOnly: boolean
}
