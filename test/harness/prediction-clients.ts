/** Clients of the prediction market beside the gateway, which others wrote: of strangers, and with the key of a user. */
import type { SecureClient } from '@polymarket/client'
import { createSecureClient } from '@polymarket/client'
import { builderApiKey } from '@polymarket/client/node'
import { signerFrom } from '@polymarket/client/viem'
import type pg from 'pg'
import { createWalletClient, type Hex, http as httpTransport } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { polygon } from 'viem/chains'
import { openKeystore } from '#compose/custody.ts'
import { readConfig } from '#config.ts'
import { systemClock } from '#kernel/clock.ts'
import { noFailpoints } from '#kernel/failpoint.ts'
import { systemRandom } from '#kernel/id.ts'
import type { WalletRow } from '#store/tables/identity.ts'
import { createHttpClient } from '#upstreams/http-client.ts'
import { environmentOf } from '../../world/conformance/prediction/official-client.ts'
import { predictionVenue } from '../journeys/predmkt-calls.ts'
import { worldOf } from '../journeys/world.ts'

/** Signs in with a key, and makes and approves the wallet of its owner where there is none yet. */
async function clientWith(control: string, key: Hex): Promise<SecureClient> {
  const { manifest } = await worldOf(control)
  const account = privateKeyToAccount(key)
  const transport = httpTransport(manifest.urls.evm['137'])
  const client = await createSecureClient({
    environment: environmentOf(manifest),
    signer: signerFrom(createWalletClient({ account, chain: polygon, transport })),
    apiKey: builderApiKey(await predictionVenue(control)('POST', '/builder-key', {})),
  })
  await client.setupTradingApprovals()
  return client
}

/** Another trader, with so much cash. */
export async function otherTrader(control: string, usd: string): Promise<SecureClient> {
  const client = await clientWith(control, generatePrivateKey())
  await predictionVenue(control)('POST', '/credit', { wallet: client.account.wallet, amount: usd })
  return client
}

/** Another client of a user of the gateway. The local environment seals keys with a key that everybody knows. */
export async function otherClientOf(
  { control, database }: { control: string; database: pg.Pool },
  { evm }: { evm: string },
): Promise<SecureClient> {
  const sql = `select * from wallet where kind = 'evm' and lower(address) = lower($1)`
  const { rows } = await database.query<WalletRow>(sql, [evm])
  await using net = createHttpClient({ failpoints: noFailpoints })
  const { keystore } = openKeystore({ config: readConfig({}), net, clock: systemClock, random: systemRandom })
  const key = await keystore.withKey(
    rows[0]!,
    async (secret): Promise<Hex> => `0x${Buffer.from(secret).toString('hex')}`,
  )
  return clientWith(control, key)
}
