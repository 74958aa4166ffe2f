import { Fault } from '#kernel/fault.ts'
import type { Net } from '#kernel/net.ts'

/** Optional faucet that funds a new wallet, once per id. */
export type Faucet = { fund(order: { chainId: string; address: string; id: string }): Promise<void> }

type Options = { url: string; net: Net; timeoutMs?: number }

export const faucet = ({ url, net, timeoutMs = 10_000 }: Options): Faucet => ({
  async fund({ chainId, address, id }) {
    const { status, body } = await net.fetch({
      url: `${url}/fund`,
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ chain_id: chainId, address, id }),
      timeoutMs,
      maxBytes: 64 * 1024,
    })
    if (status >= 200 && status < 300) return
    const reason = body.slice(0, 200)
    throw status >= 500 || status === 429
      ? new Fault('unavailable', `The faucet failed with status ${status}`)
      : new Fault('upstream_rejected', `The faucet refused with status ${status}: ${reason}`)
  },
})
