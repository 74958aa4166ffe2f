import { createSecureClient, forkEnvironmentConfig, type SecureClient } from '@polymarket/client'
import { builderApiKey } from '@polymarket/client/node'
import { signerFrom } from '@polymarket/client/viem'
import type { World } from '#world/world.ts'
import { walletOf } from './prediction.ts'
import type { PredictionWorld } from './prediction-world.ts'

const closed = 'http://127.0.0.1:1'

export const environmentOf = ({ urls: { polymarket: urls, evm } }: Pick<World, 'urls'>) =>
  forkEnvironmentConfig({
    name: 'local',
    rpc: evm['137'],
    clob: { rest: urls.clob, market: { ws: `${urls.socket}/market` }, user: { ws: `${urls.socket}/user` } },
    relayer: { rest: urls.relayer },
    gamma: { rest: urls.gamma },
    data: { rest: urls.data },
    combos: { rest: closed, ws: closed.replace('http', 'ws'), collateralReturn: { rest: closed } },
    perps: { rest: closed, ws: closed.replace('http', 'ws') },
    rtds: { ws: closed.replace('http', 'ws') },
    sports: { ws: closed.replace('http', 'ws') },
    relayerPollFrequencyMs: 50,
  })

export const signerAt = (world: World, number: number) => signerFrom(walletOf(number, world.urls.evm['137']))

/** A deposit wallet, deployed, approved and funded, by a key for every account. */
export const depositClient = async (
  { world, control }: PredictionWorld,
  number: number,
  usd = '1000',
): Promise<SecureClient> => {
  const client = await createSecureClient({
    environment: environmentOf(world),
    signer: signerAt(world, number),
    apiKey: builderApiKey(await control('POST', '/builder-key', {})),
  })
  await client.setupTradingApprovals()
  if (usd !== '0') await control('POST', '/credit', { wallet: client.account.wallet, amount: usd })
  return client
}
