import { type GoValue, sprintf } from '../go/fmt/sprintf.ts'
import { asArray, asString } from '../values/operands.ts'
import { isNumber, numberText, type RegoNumber, type Value } from '../values/value.ts'
import { weigh } from '../values/weight.ts'
import { type BuiltinTable, builtin } from './builtin.ts'
import { showValue, timesToShow } from './show-value.ts'

/** Numbers keep their kind; every other value is the text that Rego writes for it (`null` and `true` too). */
const goValue = (value: Value): GoValue => {
  if (typeof value === 'string') return { type: 'string', value }
  return isNumber(value) ? goNumber(value) : { type: 'string', value: showValue(value) }
}

const goNumber = (number: RegoNumber): GoValue => {
  const text = numberText(number)
  if (/^-?\d+$/.test(text)) {
    const value = BigInt(text)
    return { type: BigInt.asIntN(64, value) === value ? 'int64' : '*big.Int', value }
  }
  // With an exponent but without a decimal point it stays a text, as in OPA.
  const value = Number(text)
  return text.includes('.') && Number.isFinite(value) ? { type: 'float64', value } : { type: 'string', value: text }
}

export const sprintfBuiltins: BuiltinTable = {
  sprintf: builtin([asString, asArray], (format, values, meter) => {
    for (const value of values) weigh(value, meter, timesToShow)
    return sprintf(format, values.map(goValue), meter)
  }),
}
