/** kill -9 at the boundaries of tasks that set an account at the prediction market up. */
import assert from 'node:assert/strict'
import { executed, setUp, statusOf } from '../journeys/predmkt-calls.ts'
import { afterStep, type Case, killInCases } from './predmkt-points.ts'

const setup: Case = {
  title: 'set-up',
  shortPoint: 'net:polymarket:after@3',
  needed: afterStep,
  async run(points, attempt) {
    const { at } = attempt
    const who = await points.newPerson()
    await who.call('POST /predmkt/disclaimer/acknowledge', { body: {} })
    await points.request(attempt, '/predmkt/setup', {}, { who })
    assert.equal((await statusOf(who)).setup_complete, true, at)
    assert.equal(await points.relayNonce(who.evm), 1n, `${at}: one batch of approvals`)
    const keys = 'select count(*) from prediction_key where lower(owner_address) = lower($1)'
    assert.equal(await points.count(keys, [who.evm]), 1, at)
  },
}

/** Cash that lies in the older kind of wallet moves to the one that trades. */
const migration: Case = {
  title: 'migration from a Safe',
  shortPoint: 'net:polymarket:after@3',
  needed: afterStep,
  async run(points, attempt) {
    const { at } = attempt
    const who = await points.newPerson()
    await setUp(who)
    const { safe_address: wallet } = await statusOf(who)
    const { safe } = await points.venue<{ safe: string }>('POST', '/safe', { owner: who.evm })
    await points.venue('POST', '/credit', { wallet: safe, amount: '7' })
    await points.request(attempt, '/predmkt/setup/v2', {}, { who })
    assert.equal((await points.held('', wallet)).pusd, 7_000_000n, at)
    assert.equal((await points.held('', safe)).pusd, 0n, at)
    assert.equal(await points.relayNonce(who.evm, 'SAFE'), 1n, `${at}: one batch of the Safe`)
    await executed(who, '/predmkt/withdraw', { amount_usdc: '7' })
  },
}

killInCases('the set-up at the prediction market', [setup, migration])
