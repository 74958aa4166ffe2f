import { Fault } from '#kernel/contract/fault.ts'
import { isRecord, parseJson } from '#kernel/wire/json.ts'
import type { Net } from '#kernel/wire/upstream-http.ts'

/** A payment that the faucet reports; a faucet need not report what it paid. */
export type FaucetCredit = { token: string; amountUnits: bigint }
/** An optional faucet that funds a new wallet, once per id. */
export type Faucet = {
  fund(order: { chainId: string; address: string; id: string }): Promise<FaucetCredit[]>
}

type Options = { url: string; net: Net }

export const createFaucet = ({ url, net }: Options): Faucet => ({
  async fund({ chainId, address, id }) {
    const { status, body } = await net.fetch({
      url: `${url}/fund`,
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ chain_id: chainId, address, id }),
      timeoutMs: 10_000,
      maxBytes: 64 * 1024,
    })
    if (status >= 200 && status < 300) return creditsOf(body)
    const reason = body.slice(0, 200)
    throw status >= 500 || status === 429
      ? new Fault('unavailable', `The faucet failed with status ${status}`)
      : new Fault('upstream_rejected', `The faucet refused with status ${status}: ${reason}`)
  },
})

const creditsMax = 100

function creditsOf(body: string): FaucetCredit[] {
  const { credited } = recordIn(body)
  const list: unknown[] = Array.isArray(credited) ? credited.slice(0, creditsMax) : []
  return list.flatMap((each) => {
    if (!isRecord(each)) return []
    const { token, amount_units: units } = each
    const isCredit = typeof token === 'string' && typeof units === 'string' && /^\d{1,78}$/.test(units)
    return isCredit ? [{ token, amountUnits: BigInt(units) }] : []
  })
}

function recordIn(body: string): Record<string, unknown> {
  const parsed = parseJson(body)
  return isRecord(parsed) ? parsed : {}
}
