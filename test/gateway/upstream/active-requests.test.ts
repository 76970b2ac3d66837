import { expect, test } from 'vitest'
import { createRunning, type Waiting } from '../../../gateway/upstream/active-requests.ts'

const waiting = (): Waiting => ({ place: -1, look() {} })

test('whatever order requests end in, those that run are known, each once', () => {
  const running = createRunning()
  const [a, b, c, d] = [waiting(), waiting(), waiting(), waiting()] as const
  const present = () => {
    const seen: Waiting[] = []
    running.forEach((one) => void seen.push(one))
    return [a, b, c, d].map((one) => seen.filter((other) => other === one).length)
  }
  for (const one of [a, b, c, d]) running.add(one)
  running.remove(b)
  expect([present(), running.size]).toEqual([[1, 0, 1, 1], 3])
  running.remove(b)
  running.remove(c)
  expect([present(), running.size]).toEqual([[1, 0, 0, 1], 2])
  running.add(b)
  expect(present()).toEqual([1, 1, 0, 1])
})

test('one that is removed while it is looked at hides no other', () => {
  const running = createRunning()
  const all = Array.from({ length: 5 }, waiting)
  for (const one of all) running.add(one)
  const seen = new Set<Waiting>()
  running.forEach((one) => {
    seen.add(one)
    running.remove(one)
  })
  expect([seen.size, running.size]).toEqual([5, 0])
})
