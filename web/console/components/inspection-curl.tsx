import { curlOfGateway, type EndpointName, type GatewayInput } from '../api/gateways.ts'
import { CopyButton } from './copy.tsx'

/** The same question to a gateway's own inspection listener, for a shell. */
export const CopyInspectionCurl = <Name extends EndpointName>({
  name,
  input,
}: {
  name: Name
  input?: GatewayInput<Name>
}) => (
  <CopyButton text={curlOfGateway(name, input)} label={`Copy as curl: ${name}`}>
    curl
  </CopyButton>
)
