import type { Meter } from '../base/meter.ts'
import { goJson } from '../go/json.ts'
import { renderTemplate, TemplateError } from '../go/template/execute.ts'
import { asObject, asString, refuse } from '../values/operands.ts'
import { parseValue } from '../values/text.ts'
import type { RegoObject } from '../values/value.ts'
import { weigh } from '../values/weight.ts'
import { type BuiltinTable, builtin } from './builtin.ts'

const timesToRead = 5

const render = (template: string, variables: RegoObject, meter: Meter): string => {
  for (const key of variables.keys()) asString(key)
  weigh(variables, meter, timesToRead)
  try {
    // As in OPA, what the template sees is the JSON of the variables; only there a set is a list.
    return renderTemplate(template, parseValue(goJson(variables)), meter)
  } catch (error) {
    if (error instanceof TemplateError) return refuse(error.message)
    throw error
  }
}

export const templateBuiltins: BuiltinTable = {
  'strings.render_template': builtin([asString, asObject], render),
}
