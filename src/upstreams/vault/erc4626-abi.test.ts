import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addressOf, callData, flowOf, parseUint } from './erc4626-abi.ts'

const vault = '0xeA12000000000000000000000000000000008453'
const owner = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const other = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC'
const word = (hex: string) => hex.replace('0x', '').toLowerCase().padStart(64, '0')
const withdrawTopic = '0xfbde797d201c681b91056529119e0b02407c7bb96a4a2c75c01fc9667232c8db'
const depositTopic = '0xdcbc1c05240f31ff3ad067ef1ee35ce4997762752e3a095284754544f4c709d7'

const deposited = (whose: string, assets: bigint, shares: bigint, address = vault) => ({
  address,
  topics: [depositTopic, `0x${word(whose)}`, `0x${word(whose)}`],
  data: `0x${word(assets.toString(16))}${word(shares.toString(16))}`,
})

test('calls are a selector and padded words', () => {
  assert.equal(
    callData('withdraw', 1_000_000n, owner, owner),
    `0xb460af94${word('f4240')}${word(owner)}${word(owner)}`,
  )
  assert.equal(callData('asset'), '0x38d52e0f')
  assert.throws(() => callData('balanceOf', '0x1234'), RangeError)
})

test('answers shorter than a word are invalid', () => {
  assert.equal(parseUint('0x'), undefined)
  assert.equal(parseUint(`0x${word('12')}`), 18n)
  assert.equal(addressOf(`0x${word(owner)}`), owner.toLowerCase())
})

test('a withdrawal belongs to the owner of the shares, also when another account receives the assets', () => {
  const topics = [withdrawTopic, word(other), word(other), word(owner)].map((each, at) =>
    at === 0 ? each : `0x${each}`,
  )
  const logs = [{ address: vault, topics, data: `0x${word('5')}${word('4')}` }]
  assert.deepEqual(flowOf(logs, { vault, owner, event: 'withdraw' }), { assetsUnits: 5n, sharesUnits: 4n })
  assert.equal(flowOf(logs, { vault, owner: other, event: 'withdraw' }), undefined)
})

test('the deposits of one owner are read from the events of this vault alone', () => {
  const logs = [
    deposited(owner, 5_000_000n, 5n * 10n ** 18n),
    deposited(other, 7n, 7n),
    deposited(owner, 9n, 9n, other),
  ]
  assert.deepEqual(flowOf(logs, { vault, owner, event: 'deposit' }), {
    assetsUnits: 5_000_000n,
    sharesUnits: 5n * 10n ** 18n,
  })
  assert.equal(flowOf(logs, { vault, owner, event: 'withdraw' }), undefined)
  assert.equal(flowOf([], { vault, owner, event: 'deposit' }), undefined)
})
