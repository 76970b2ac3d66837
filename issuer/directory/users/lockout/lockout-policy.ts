import type { SignInExperience } from '../../sign-in-experience/sign-in-experience.ts'

/** How often somebody may fail, and for how long nobody gets in after that. */
export interface LockoutPolicy {
  /** Within `windowSeconds`. The one after that is not looked at. */
  attempts: number
  windowSeconds: number
  /** Of the first lock; each further one is twice as long, a day at most. */
  lockSeconds: number
}

export const lockoutDefaults: LockoutPolicy = { attempts: 10, windowSeconds: 900, lockSeconds: 900 }

/** Of a person's second factors together. */
export const secondFactorPolicy: LockoutPolicy = { attempts: 5, windowSeconds: 900, lockSeconds: 900 }

/** `sentinelPolicy`, in minutes. The lock is as long as the window. */
export const lockoutPolicyOf = ({
  sentinelPolicy: { maxAttempts, lockoutDuration },
}: SignInExperience): LockoutPolicy => ({
  attempts: maxAttempts,
  windowSeconds: lockoutDuration * 60,
  lockSeconds: lockoutDuration * 60,
})
