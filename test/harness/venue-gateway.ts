import { proofSeed } from '../proof/support/seed.ts'
import { decimalUnits, testFunding, venueDecimals } from './conservation.ts'
import { freshGateway, http } from './gateway.ts'

/** The combined request budget of ten addresses per minute: tests create many accounts at once. */
export const enforcedWeight = 12_000

type Control = <B = object>(method: string, path: string, body?: object) => Promise<B>

/** Sends a request to the control port of a world's venue. */
export const venueControl =
  (world: string): Control =>
  async <B>(method: string, path: string, body?: object) => {
    const reply = await http<B>(`${world}/venues/hyperliquid${path}`, { method, ...(body && { body }) })
    if (reply.status !== 200) throw new Error(`${method} ${path}: ${JSON.stringify(reply.body)}`)
    return reply.body
  }

/** Credits test money at the venue; USDC to the perpetuals, a token to spot, and `USDC` to spot, too. */
export async function creditAtVenue(
  venue: Control,
  { evm, amount, coin = 'perp' }: { evm: string; amount: string; coin?: string },
): Promise<void> {
  await venue('POST', '/credit', { user: evm, coin, amount })
  const asset = `venue:${coin === 'perp' ? 'USDC' : coin}`
  testFunding.add({ evm }, { asset, units: decimalUnits(amount, venueDecimals), why: 'credited by the test' })
}

/** From here on the venue lags, is blind at times, and counts weight, by the seed of the run. */
export const makeRealistic = (venue: Control, suite: string) =>
  venue('POST', '/realism', {
    preset: 'realistic',
    seed: proofSeed(suite),
    weightPerMinute: enforcedWeight,
  })

/** A gateway with a world of its own whose venue has all deviations of the real one. */
export async function venueGateway(env: Record<string, string> = {}) {
  const gateway = await freshGateway(
    { HYPERLIQUID_WEIGHT_PER_MINUTE: String(enforcedWeight), ...env },
    { ownWorld: 'the venue of this one lags and counts' },
  )
  const venue = venueControl(gateway.world)
  await makeRealistic(venue, 'venue')
  return { ...gateway, venue }
}
