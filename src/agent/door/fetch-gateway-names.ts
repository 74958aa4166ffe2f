import { ProtocolError } from '#kernel/wire/agent-protocol.ts'
import type { Json } from '#kernel/wire/json.ts'
import type { Ask } from './remote-tools.ts'

type GatewayNames = { chains: Json[]; assets: Json[] }
export type NamesReader = { version: string; read(): Promise<GatewayNames> }
type Page = GatewayNames & { version: string; next: number | null }

const pagesMax = 20

export const createNamesReader = (version: string, ask: Ask): NamesReader => ({
  version,
  async read() {
    const names: GatewayNames = { chains: [], assets: [] }
    let from: number | null = 0
    for (let page = 0; page < pagesMax && from !== null; page++) {
      const { chains, assets, next } = (await ask('names', { from })).output as Page
      names.chains.push(...chains)
      names.assets.push(...assets)
      from = next
    }
    if (from !== null) throw new ProtocolError('there are more names than a service reads')
    return names
  },
})
