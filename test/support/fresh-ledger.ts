import { afterEach, beforeEach } from 'vitest'
import { startRawReceiver } from './raw-receiver.ts'
import { startTestLedger, type TestLedger } from './relay.ts'
import { type Answer, startWebhookReceiver, type WebhookReceiver } from './webhook-receiver.ts'

/**
 * What every test of a file that says `eachWithLedger()` has to itself: a ledger, and receivers of webhooks. What a
 * file itself opens it closes before.
 */
export let ledger: TestLedger
export let receiver: WebhookReceiver

let others: { close(): Promise<void> }[]
const closedLater = <Receiver extends { close(): Promise<void> }>(other: Receiver): Receiver => {
  others.push(other)
  return other
}
export const anotherReceiver = async (answer?: Answer) => closedLater(await startWebhookReceiver(answer))
export const rawReceiver = async (answer: Parameters<typeof startRawReceiver>[0]) =>
  closedLater(await startRawReceiver(answer))

export const eachWithLedger = () => {
  beforeEach(async () => {
    others = []
    ledger = await startTestLedger()
    receiver = await startWebhookReceiver()
  })
  afterEach(async () => {
    await ledger.close()
    await receiver.close()
    for (const other of others) await other.close()
  })
}
