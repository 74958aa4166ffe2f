import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Operation } from '#kernel/contract/operation.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { recommendationText } from './recommendation-text.ts'
import type { Lists } from './value-words.ts'

const native = '0x0000000000000000000000000000000000000000'
const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'
const unlisted = '0x000000000000000000000000000000000000dEaD'
const chainOf = (id: string, name: string, displayName: string): Lists['chains'][number] => ({
  id,
  name,
  displayName,
  family: 'evm',
  native: { symbol: 'ETH', name: 'Ether', decimals: 18, address: native, priceId: 'ether' },
  tokens: [{ symbol: 'USDC', name: 'USD Coin', decimals: 6, address: usdc }],
})
const lists: Lists = {
  chains: [chainOf('8453', 'base', 'Base'), chainOf('42161', 'arbitrum', 'Arbitrum One')],
  spellAddress: (text) => (text.toLowerCase() === unlisted.toLowerCase() ? unlisted : text),
}
const slippage = { properties: { slippage_bps: { default: 100 }, max_price_impact_bps: { default: 2_500 } } }
const textOf = (name: string, input: JsonObject, body: object = {}) => {
  const { title, detail } = recommendationText(
    { name, entry: { summary: 'The summary', body } as unknown as Operation['entry'] },
    input,
    lists,
  )
  return [title, ...detail.split('\n')]
}

test('a swap says what is sold, what is bought, and how much may be lost', () => {
  const input = { chain_id_in: 8453, token_in: usdc.toLowerCase(), token_out: 'eth', amount: '20000000' }
  assert.deepEqual(textOf('swap_execute', input, slippage), [
    'Swap 20 USDC for ETH on Base',
    `Sell: 20 USDC (${usdc}) on Base`,
    'Buy: ETH (the native coin) on Base',
    'Slippage: at most 1 %, the default',
    'Loss of value: at most 25 %, the default',
  ])
  assert.deepEqual(
    textOf(
      'swap_execute',
      {
        chain_id_in: 'base',
        chain_id_out: 'arbitrum',
        token_in: 'USDC',
        token_out: native,
        amount_usd: '1234.5',
        slippage_bps: 55,
        max_price_impact_bps: 10_000,
        recipient: unlisted.toLowerCase(),
        stop_loss: { price_percentage: '0.1' },
        take_profit: [{ price_usd: 19.5, sell_percentage: '0.25' }, { price_percentage: '0.5' }],
        quote_id: null,
      },
      slippage,
    ),
    [
      'Swap 1,234.5 USD of USDC on Base for ETH on Arbitrum One',
      `Sell: 1,234.5 USD of USDC (${usdc}) on Base`,
      'Buy: ETH (the native coin) on Arbitrum One',
      `Recipient: ${unlisted}`,
      'Slippage: at most 0.55 %',
      'Loss of value: at most 100 %',
      'Stop-loss: sells all of it at 10 % below the reference price',
      'Take-profit: sells 25 % of it at 19.5 USD',
      'Take-profit: sells all of it at 50 % above the reference price',
      'quote_id not set',
    ],
  )
})

test('a token that is not listed is named by its whole address, and counted in its smallest units', () => {
  const input = { chain_id_in: '8453', token_in: unlisted.toLowerCase(), token_out: 'FAKE', amount: '1500' }
  assert.deepEqual(textOf('swap_execute', input), [
    `Swap 1,500 smallest units of ${unlisted} for FAKE on Base`,
    `Sell: 1,500 smallest units of ${unlisted} (not on the list of the gateway) on Base`,
    'Buy: FAKE (not on the list of the gateway) on Base',
  ])
  assert.deepEqual(textOf('swap_execute', { ...input, chain_id_in: '56', token_in: 'USDC' }), [
    'Swap 1,500 smallest units of USDC for FAKE on chain 56 (not on the list of the gateway)',
    'Sell: 1,500 smallest units of USDC (not on the list of the gateway) on chain 56 (not on the list of the gateway)',
    'Buy: FAKE (not on the list of the gateway) on chain 56 (not on the list of the gateway)',
  ])
})

test('a limit order names the token whose price counts', () => {
  const input = { chain_id_in: '8453', token_in: 'USDC', token_out: 'ETH', amount: '1', condition: 'lte' }
  const [title, , , when] = textOf('limit_orders_create', { ...input, price_usd_trigger: '1800' })
  assert.equal(title, 'Swap 0.000001 USDC for ETH on Base once ETH is at 1,800 USD or less')
  assert.equal(when, 'When: ETH (the native coin) on Base is at 1,800 USD or less')
  const other = { trigger_token_address: unlisted, trigger_token_chain: 42161 }
  const [, , , away] = textOf('limit_orders_create', {
    ...input,
    ...other,
    condition: 'gte',
    price_usd_trigger: 2,
  })
  assert.equal(away, `When: ${unlisted} (not on the list of the gateway) on Arbitrum One is at 2 USD or more`)
})

test('a position says its side, its size, its leverage and its exits', () => {
  assert.deepEqual(
    textOf('perp_open', {
      asset: 'BTC',
      side: 'SHORT',
      notional_usd: 250,
      leverage: '3',
      order_type: 'limit',
      limit_price: '98000',
      tp_price: '90000',
      sl_price: '110000.5',
      reduce_only: false,
      client_order_id: 'free of risk\u202e, says the bank',
    }),
    [
      'Open a 3x short of 250 USD of BTC on Hyperliquid',
      'Market: BTC, a perpetual on Hyperliquid',
      'Side: SHORT',
      'Worth: 250 USD of BTC',
      'Leverage: 3x',
      'Order: limit',
      'Limit price: 98,000 USD',
      'Take-profit: at 90,000 USD',
      'Stop-loss: at 110,000.5 USD',
      'Only reduces a position: no',
      'Label: "free of risk\\u202e, says the bank"',
    ],
  )
})

test('what is left out and means everything is said', () => {
  assert.equal(textOf('perp_close', { asset: 'BTC' })[0], 'Close the whole position in BTC on Hyperliquid')
  assert.equal(
    textOf('perp_close', { asset: 'BTC', size: '0.5' })[0],
    'Close 0.5 BTC of the position on Hyperliquid',
  )
  assert.equal(textOf('spot_venue_sell', { asset: 'HYPE' })[2], 'Size: everything that is free')
  assert.deepEqual(textOf('earn_withdraw', { position_id: 'p1', amount_usdc: null }), [
    'Withdraw everything from a position of the vault',
    'Withdraw: every share of the position',
    'Position: p1',
    'amount_usdc not set',
  ])
  assert.equal(
    textOf('perp_cancel_all', {})[0],
    'Cancel every order and trigger of perpetuals in all markets on Hyperliquid',
  )
  assert.equal(textOf('outstanding_orders_cancel', { all: true })[0], 'Cancel every hook and limit order')
})

test('an order at the prediction market says what it pays or sells, and names the outcome by its id', () => {
  assert.deepEqual(
    textOf('predmkt_order', { outcome_id: '45601', side: 'BUY', order_type: 'FOK', amount_usd: '20' }),
    [
      'Buy shares for 20 USD at Polymarket',
      'Outcome: 45601',
      'Side: BUY',
      'Pay: at most 20 USD, fee included',
      'Order: FOK',
    ],
  )
  assert.deepEqual(textOf('predmkt_order', { token_id: '7', side: 'SELL', size: '10', price: '0.5' }), [
    'Sell 10 shares at Polymarket',
    'Outcome: 7',
    'Side: SELL',
    'Size: 10 shares',
    'Price: 0.5 USD for one share',
  ])
  assert.deepEqual(textOf('predmkt_fund', { amount_usd: '25', source_chain_id: '8453' }), [
    'Move 25 USD of USDC to Polymarket, from your wallet on Base',
    `Amount: 25 USD of USDC (${usdc}) on Base`,
  ])
  assert.deepEqual(
    textOf('predmkt_withdraw', { amount_usdc: '5', destination_chain_id: '8453', token: 'coin' }),
    ['Withdraw 5 USD from Polymarket, to your wallet on Base', 'Amount: 5 USD, to Base', 'token coin'],
  )
  assert.equal(
    textOf('predmkt_redeem', { all: true })[0],
    'Redeem the shares of every resolved market at Polymarket',
  )
  assert.equal(textOf('predmkt_cancel', { cancel_all: true })[0], 'Cancel every order and exit at Polymarket')
})

test('an operation or a field without words of its own is printed by its name', () => {
  assert.deepEqual(textOf('some_move', { units: 3, note: { to: 'é\n' } }), [
    'The summary',
    'units 3',
    'note {"to":"\\u00e9\\n"}',
  ])
  assert.deepEqual(textOf('some_move', {}), ['The summary', 'It has no arguments.'])
  assert.equal(textOf('earn_deposit', { amount_usdc: '5', tip: '4' })[2], 'tip 4')
})

test('nothing is cut: what is too long to be read is not recommended', () => {
  const id = 'x'.repeat(15_000)
  assert.ok(textOf('earn_withdraw', { position_id: id }).join('').includes(id))
  assert.throws(() => textOf('earn_withdraw', { position_id: id.repeat(2) }), /too long to be recommended/)
})
