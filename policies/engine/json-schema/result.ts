import type { Meter } from '../base/meter.ts'

/** Where a document breaks its schema, in gojsonschema's words. */
export interface Mismatch {
  type: string
  field: string
  description: string
}

/**
 * What one schema says about one field, and how close it came: of several alternatives the closest one's mismatches are
 * told.
 */
export interface Result {
  field: string
  meter: Meter
  mismatches: Mismatch[]
  score: number
}

const unitsForMismatch = 30

export const emptyResult = (field: string, meter: Meter): Result => ({ field, meter, mismatches: [], score: 0 })

export const fail = (result: Result, type: string, description: string): void => {
  // A long name stands in each of the mismatches below it.
  result.meter.spend(unitsForMismatch + result.field.length + description.length)
  result.mismatches.push({ type, field: result.field, description })
  result.score -= 2
}

export const merge = (result: Result, other: Result): void => {
  result.meter.spend(other.mismatches.length)
  for (const mismatch of other.mismatches) result.mismatches.push(mismatch)
  result.score += other.score
}

export const isValid = ({ mismatches }: Result): boolean => mismatches.length === 0

/** Tells what the alternative says that came closest, the first one of several. */
export const mergeClosest = (result: Result, alternatives: readonly Result[]): void => {
  const [first, ...others] = alternatives
  if (first)
    merge(
      result,
      others.reduce((best, one) => (one.score > best.score ? one : best), first),
    )
}
