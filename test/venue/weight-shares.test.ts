import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { Fault } from '#kernel/contract/fault.ts'
import { createVenueApp, type Instance, type VenueApp } from './venue-app.ts'

const weight = 1_200
const pollEveryMs = 100
const forMs = 20_000

describe('views of one user beside orders of another', () => {
  let app: VenueApp
  let limited: Instance
  before(async () => {
    app = await createVenueApp({ quiet: 'the weight of each request is counted' })
    await app.price('BTC', 100_000)
    limited = await app.instance({ weight })
    await app.market.control('POST', '/limits', { weightPerMinute: weight })
  })
  after(async () => {
    await app?.[Symbol.asyncDispose]()
  })

  test('a user who polls orders every 100 ms is always answered, and no open and no close of another is rejected', async () => {
    await app.market.control('POST', '/limits', { weightPerMinute: 0 })
    const [poller, trader] = await Promise.all([app.trader(), app.trader()])
    await app.market.control('POST', '/limits', { weightPerMinute: weight })
    const untilMs = performance.now() + forMs
    let views = 0
    const poll = async () => {
      while (performance.now() < untilMs) {
        await limited.call('perp_orders', {}, poller)
        await limited.call('perp_setup_status', {}, poller)
        views += 2
        await pause(pollEveryMs)
      }
    }
    const outcomes: string[] = []
    const trade = async () => {
      while (performance.now() < untilMs)
        for (const [name, body] of [
          ['perp_open', { asset: 'BTC', side: 'long', size: '0.001' }],
          ['perp_close', { asset: 'BTC' }],
        ] as const) {
          const said = await limited.call(name, body, trader).catch((fault: unknown) => {
            if (fault instanceof Fault) return { outcome: `${fault.code}: ${fault.message}` }
            throw fault
          })
          outcomes.push(`${name} ${said.outcome}`)
          await pause(1_500)
        }
    }
    await Promise.all([poll(), trade()])
    assert.deepEqual([...new Set(outcomes)], ['perp_open executed', 'perp_close executed'])
    assert.ok(views > 50 && outcomes.length >= 6, `${views} views and ${outcomes.length} orders`)
    assert.equal(limited.rateLimitedCount(), 0)
    assert.ok(limited.budget.used() <= weight, String(limited.budget.used()))
  })
})
