import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeAbiParameters, encodeEventTopics, pad, parseAbi, parseAbiParameters } from 'viem/utils'
import { contracts } from './contracts.ts'
import { polymarketMoney } from './money-calls.ts'

const wallet = '0x1111111111111111111111111111111111111111'
const other = '0x2222222222222222222222222222222222222222'
const abi = parseAbi([
  'event TransferSingle(address indexed operator, address indexed from, address indexed to, uint256 id, uint256 value)',
  'event TransferBatch(address indexed operator, address indexed from, address indexed to, uint256[] ids, uint256[] values)',
])
type Hex = `0x${string}`
const topicsOf = (eventName: 'TransferSingle' | 'TransferBatch', from: Hex, to: Hex) =>
  encodeEventTopics({ abi, eventName, args: { operator: wallet, from, to } }) as Hex[]
const single = (address: string, from: Hex, id: bigint, value: bigint) => ({
  address,
  topics: topicsOf('TransferSingle', from, other),
  data: encodeAbiParameters(parseAbiParameters('uint256, uint256'), [id, value]),
})

test('the shares that left a wallet are those of its own transfers of outcome tokens', () => {
  const batch = {
    address: contracts.conditionalTokens.toLowerCase(),
    topics: topicsOf('TransferBatch', wallet, other),
    data: encodeAbiParameters(parseAbiParameters('uint256[], uint256[]'), [
      [1n, 2n],
      [30n, 0n],
    ]),
  }
  const logs = [
    batch,
    single(contracts.positionManager, wallet, 3n, 40n),
    single(contracts.positionManager, other, 4n, 50n),
    single(contracts.pusd, wallet, 5n, 60n),
    { address: contracts.conditionalTokens, topics: [pad('0x1')], data: '0x' },
  ]
  assert.deepEqual(polymarketMoney.sharesSent(wallet.toUpperCase().replace('0X', '0x'), logs), [
    { outcomeId: '1', sizeUnits: 30n },
    { outcomeId: '2', sizeUnits: 0n },
    { outcomeId: '3', sizeUnits: 40n },
  ])
})
