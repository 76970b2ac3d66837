import { renderTemplate, TemplateError } from '../go/template/execute.ts'
import { asObject, asString, refuse } from '../values/operands.ts'
import { parseValue, type Value } from '../values/values.ts'
import { goJson } from './encoding.ts'
import type { HostBuiltin } from './index.ts'

const render = (template: string, variables: Map<Value, Value>): string => {
  for (const key of variables.keys()) asString(key)
  try {
    // As in OPA, what the template sees is the JSON of the variables; only there a set is a list.
    return renderTemplate(template, parseValue(goJson(variables)))
  } catch (error) {
    if (error instanceof TemplateError) return refuse(error.message)
    throw error
  }
}

export const templateBuiltins: Record<string, HostBuiltin> = {
  'strings.render_template': ([template, variables]) => render(asString(template), asObject(variables)),
}
