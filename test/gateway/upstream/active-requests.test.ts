import { expect, test } from 'vitest'
import { type ActiveRequest, createActiveRequests } from '../../../gateway/upstream/active-requests.ts'

const request = (): ActiveRequest => ({ place: -1, check() {} })

test('whatever order requests end in, those that run are known, each once', () => {
  const requests = createActiveRequests()
  const [a, b, c, d] = [request(), request(), request(), request()] as const
  const present = () => {
    const seen: ActiveRequest[] = []
    requests.forEach((one) => void seen.push(one))
    return [a, b, c, d].map((one) => seen.filter((other) => other === one).length)
  }
  for (const one of [a, b, c, d]) requests.add(one)
  requests.remove(b)
  expect([present(), requests.size]).toEqual([[1, 0, 1, 1], 3])
  requests.remove(b)
  requests.remove(c)
  expect([present(), requests.size]).toEqual([[1, 0, 0, 1], 2])
  requests.add(b)
  expect(present()).toEqual([1, 1, 0, 1])
})

test('one that is removed while it is looked at hides no other', () => {
  const requests = createActiveRequests()
  const all = Array.from({ length: 5 }, request)
  for (const one of all) requests.add(one)
  const seen = new Set<ActiveRequest>()
  requests.forEach((one) => {
    seen.add(one)
    requests.remove(one)
  })
  expect([seen.size, requests.size]).toEqual([5, 0])
})
