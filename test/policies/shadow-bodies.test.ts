import { expect, onTestFinished, test } from 'vitest'
import { silentLogger } from '../../platform/logger.ts'
import { createMetrics } from '../../platform/metrics.ts'
import { createShadow } from '../../policies/shadow.ts'
import { amountRules } from '../support/body-policies.ts'
import { until } from '../support/until.ts'
import { policyInput, ruleFolder } from './rule-folder.ts'

test('shadow policies skip requests while the bodies of others take 4 MB', async () => {
  const metrics = createMetrics()
  const path = await ruleFolder({ 'app.rego': amountRules })
  // However slow the machine is: what is skipped here is skipped for its size.
  const shadow = await createShadow({ path, input: 200_000, deadline: 10_000, logger: silentLogger, metrics })
  onTestFinished(() => shadow.close())
  const body = { amount: 1, text: 'a'.repeat(100_000) }
  const input = policyInput()
  const question = {
    requestId: 'r1',
    route: 'payments',
    entrypoint: 'app/decision',
    input: { ...input, request: { ...input.request, body } },
    decision: { allow: true as const, headers: { 'x-amount': '1' } },
    bodyLength: 100_000,
  }
  const outcomes = async () =>
    [...(await metrics.render()).text.matchAll(/^surrogate_gateway_shadow.*outcome="(\w+)"\} (\d+)$/gm)].map(
      ([, outcome, count]) => [outcome, Number(count)],
    )
  for (let count = 0; count < 50; count++) shadow.compare(question)
  expect(await outcomes()).toEqual([['skipped', 9]])
  await until(async () => expect(Object.fromEntries(await outcomes())).toEqual({ skipped: 9, same: 41 }))
  for (let count = 0; count < 41; count++) shadow.compare(question)
  await until(async () => expect(Object.fromEntries(await outcomes())).toEqual({ skipped: 9, same: 82 }))
})
