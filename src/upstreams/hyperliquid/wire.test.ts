import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parseExchangeReply } from './exchange-reply.ts'
import { codeOfRejection, codeOfStatus, isUnknownSigner } from './rejections.ts'
import { parseInfo } from './wire.ts'

describe('the answers of the venue', () => {
  test('each order of an action is parsed separately: an error is listed beside open orders', () => {
    const body = JSON.stringify({
      status: 'ok',
      response: {
        type: 'order',
        data: {
          statuses: [
            { filled: { totalSz: '0.0200', avgPx: '100.0', oid: 7 } },
            { error: 'Invalid TP/SL price. asset=0' },
            'waitingForTrigger',
            { resting: { oid: 8, cloid: '0x00' } },
          ],
        },
      },
    })
    assert.deepEqual(parseExchangeReply(body), {
      type: 'ok',
      legs: [
        { type: 'filled', orderId: 7, size: '0.02', price: '100' },
        { type: 'error', message: 'Invalid TP/SL price.' },
        { type: 'accepted', as: 'waitingForTrigger' },
        { type: 'resting', orderId: 8 },
      ],
    })
  })

  test('a rejection of the whole action is one, and an unreadable answer is neither executed nor rejected', () => {
    assert.deepEqual(parseExchangeReply('{"status":"err","response":"Action already expired"}'), {
      type: 'rejected',
      message: 'Action already expired',
    })
    assert.deepEqual(parseExchangeReply('{"status":"ok","response":{"type":"default"}}'), {
      type: 'ok',
      legs: [],
    })
    for (const body of ['null', '', '<html>', '{"status":"ok"}', '{"status":"maybe","response":""}'])
      assert.deepEqual(parseExchangeReply(body), { type: 'unreadable' })
  })

  test('a rejection keeps its meaning behind the name of the reporting layer', () => {
    const sentence = 'User or API Wallet 0xabc does not exist.'
    for (const prefix of ['L1 error: ', 'L1 Error: ', ''])
      assert.deepEqual(
        parseExchangeReply(JSON.stringify({ status: 'err', response: `${prefix}${sentence}` })),
        { type: 'rejected', message: sentence },
        prefix,
      )
  })

  test('an answer of another shape is a change of the protocol', () => {
    assert.deepEqual(parseInfo('allMids', '{"BTC":"100.5"}'), { BTC: '100.5' })
    assert.deepEqual(parseInfo('allMids', '{"BTC":1,"ETH":"2","SOL":"x"}'), { ETH: '2' })
    for (const body of ['null', '[]'])
      assert.throws(() => parseInfo('allMids', body), { code: 'upstream_changed' })
    assert.throws(() => parseInfo('orderStatus', '{"status":"gone"}'), { code: 'upstream_changed' })
  })

  test('an HTML page counts as an unavailable venue, not as a change of the protocol', () => {
    for (const body of ['<html><h1>Just a moment</h1></html>', 'x', ''])
      assert.throws(() => parseInfo('allMids', body), { code: 'unavailable' })
  })

  test('error texts are classified by their beginning', () => {
    const codes = {
      'Insufficient margin to place order. asset=3': 'insufficient_balance',
      'Order could not immediately match against any resting orders. asset=0': 'slippage',
      'User or API Wallet 0xabc does not exist.': 'setup_incomplete',
      'Must deposit before performing actions. User: 0xabc': 'setup_incomplete',
      'Too many cumulative requests sent (10001 > 10000)': 'rate_limited',
      'Order has insufficient spot balance to trade. asset=10107': 'insufficient_balance',
      'Order must have minimum value of 10 USDC. asset=10107': 'below_minimum',
      'Order price too far from oracle asset=1': 'price_too_far',
      'Something else altogether': 'venue_rejected',
    }
    for (const [sentence, code] of Object.entries(codes)) assert.equal(codeOfRejection(sentence), code)
    assert.equal(codeOfStatus('perpMarginRejected'), 'insufficient_balance')
    assert.equal(codeOfStatus('tickRejected'), 'tick_invalid')
    assert.equal(codeOfStatus('minTradeSpotNtlRejected'), 'below_minimum')
    assert.equal(codeOfStatus('somethingElseRejected'), 'venue_rejected')
    assert.ok(isUnknownSigner('User or API Wallet 0x does not exist.') && !isUnknownSigner('Must deposit'))
  })
})
