/** What the whole account is worth, wherever its money is. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, freshGateway, newAgent } from '../harness/gateway.ts'
import { type Person, personOf } from './users.ts'

type Portfolio = {
  total_value_usd: string
  places: { place: string; value_usd: string | null }[]
  complete: boolean
}

let gateway: Awaited<ReturnType<typeof freshGateway>>
let person: Person
before(async () => {
  gateway = await freshGateway()
  person = await personOf(gateway.url, await newAgent(gateway.url))
  await eventually(async () => {
    const { items } = (await person.call<{ items: { status: string }[] }>('GET /v1/tasks?kind=faucet_grant'))
      .body
    return items[0]?.status === 'completed' || undefined
  }, 'the faucet grant')
})
after(() => gateway?.[Symbol.asyncDispose]())

const read = async () => {
  const { status, body } = await person.call<Portfolio>('GET /v1/portfolio')
  assert.equal(status, 200)
  const at = (place: string) => Number(body.places.find((each) => each.place === place)?.value_usd)
  return { ...body, at, total: Number(body.total_value_usd) }
}
const done = async (route: string, body: object): Promise<void> => {
  const answer = await person.call<{ status: string; message: string }>(`${route}?wait=true`, { body })
  assert.equal(answer.body.status, 'completed', `${route}: ${answer.body.message}`)
}

test('money that moves between wallets, vault, perps and spot stays in the sum', async () => {
  const first = await read()
  assert.equal(first.complete, true)
  assert.deepEqual(
    first.places.map(({ place }) => place),
    ['wallets', 'vault', 'predictions', 'perp', 'spot_venue'],
  )
  assert.deepEqual([first.at('vault'), first.at('perp'), first.at('spot_venue')], [0, 0, 0])
  await done('POST /v1/earn/deposit', { amount_usdc: '50' })
  await done('POST /v1/perp/setup', {})
  await done('POST /v1/perp/fund', { amount_usd: '300' })
  await done('POST /v1/spot_venue/buy', { asset: 'HYPE', notional_usdc: '40' })
  const second = await eventually(async () => {
    const shown = await read()
    return shown.at('spot_venue') > 30 && shown.at('vault') > 49 ? shown : undefined
  }, 'the readings of a moment ago are over')
  assert.ok(second.at('perp') > 200 && second.at('perp') < 262, JSON.stringify(second.places))
  const lost = first.total - second.total
  assert.ok(lost > -2 && lost < 5, `fees and spreads alone are gone: ${lost} of ${first.total}`)
  const sum = second.places.reduce((all, { value_usd }) => all + Number(value_usd), 0)
  assert.ok(Math.abs(sum - second.total) < 0.000001)
})
