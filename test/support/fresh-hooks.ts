import { afterEach, beforeEach } from 'vitest'
import { type HookTest, startHookTest } from './hooks.ts'
import { startWebhookReceiver, type WebhookReceiver } from './webhook-receiver.ts'

/**
 * What every test of a file that says `eachWithHooks()` has to itself: an issuer with its hooks API, and a receiver of
 * webhooks.
 */
export let hooks: HookTest
export let receiver: WebhookReceiver

export const eachWithHooks = () => {
  beforeEach(async () => {
    hooks = await startHookTest()
    receiver = await startWebhookReceiver()
  })
  afterEach(async () => {
    await hooks.close()
    await receiver.close()
  })
}
