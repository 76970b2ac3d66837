import { type Input, type OperationId, operations, pathOf } from './operations.ts'

/** The same call for a shell; `$TOKEN` is an access token of an application with the permission. */
export const curlOf = <Id extends OperationId>(id: Id, input: Input<Id>, baseUrl: string): string =>
  curlOfRequest({
    method: operations[id].method,
    url: `${baseUrl}/api${pathOf(id, input)}`,
    body: input.body === undefined ? undefined : JSON.stringify(input.body, null, 2),
  })

/** `body` may be `@` and the name of a file. */
export const curlOfRequest = ({ method, url, body }: { method: string; url: string; body: string | undefined }) => {
  const lines = [
    `curl ${method === 'GET' ? '' : `-X ${method} `}${quoted(url)}`,
    '  -H "Authorization: Bearer $TOKEN"',
    ...(body === undefined ? [] : [`  -H 'Content-Type: application/json'`, `  -d ${quoted(body)}`]),
  ]
  return lines.join(' \\\n')
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
