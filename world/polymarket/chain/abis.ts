import { parseAbi } from 'viem'

/** What the servers call, and the errors that they read. */

export const erc20Abi = parseAbi([
  'function approve(address spender, uint256 amount) returns (bool)',
  'function allowance(address owner, address spender) view returns (uint256)',
  'function balanceOf(address owner) view returns (uint256)',
  'function totalSupply() view returns (uint256)',
  'function transfer(address to, uint256 amount) returns (bool)',
  'function mint(address to, uint256 amount)',
  'function locked() view returns (uint256)',
])

export const erc1155Abi = parseAbi([
  'function setApprovalForAll(address operator, bool approved)',
  'function isApprovedForAll(address owner, address operator) view returns (bool)',
  'function balanceOf(address owner, uint256 id) view returns (uint256)',
  'function balanceOfBatch(address[] owners, uint256[] ids) view returns (uint256[])',
])

export const conditionalAbi = parseAbi([
  'function prepareCondition(address oracle, bytes32 questionId, uint256 outcomeSlotCount)',
  'function reportPayouts(bytes32 questionId, uint256[] payouts)',
  'function splitPosition(address collateralToken, bytes32 parentCollectionId, bytes32 conditionId, uint256[] partition, uint256 amount)',
  'function mergePositions(address collateralToken, bytes32 parentCollectionId, bytes32 conditionId, uint256[] partition, uint256 amount)',
  'function redeemPositions(address collateralToken, bytes32 parentCollectionId, bytes32 conditionId, uint256[] indexSets)',
  'function getOutcomeSlotCount(bytes32 conditionId) view returns (uint256)',
  'function payoutNumerators(bytes32 conditionId, uint256 index) view returns (uint256)',
  'function payoutDenominator(bytes32 conditionId) view returns (uint256)',
])

export const negRiskAdapterAbi = parseAbi([
  'function prepareMarket(uint256 feeBips, bytes metadata) returns (bytes32)',
  'function prepareQuestion(bytes32 marketId, bytes metadata) returns (bytes32)',
  'function reportOutcome(bytes32 questionId, bool outcome)',
  'function convertPositions(bytes32 marketId, uint256 indexSet, uint256 amount)',
])

export const moduleAbi = parseAbi([
  'function prepareCondition(bytes data) returns (bytes31)',
  'function prepareEvent(bytes data, uint256 conditions) returns (bytes29)',
  'function report(bytes31 conditionId, uint256 yes, uint256 no)',
  'function isPrepared(bytes31 conditionId) view returns (bool)',
  'function payoutsOf(bytes31 conditionId) view returns (uint256 yes, uint256 no)',
])

export const routerAbi = parseAbi([
  'function split(bytes31 conditionId, uint256 amount)',
  'function merge(bytes31 conditionId, uint256 amount)',
  'function redeem(bytes31 conditionId, uint256 outcomeIndex, uint256 amount)',
])

export const exchangeAbi = parseAbi([
  'struct Order { uint256 salt; address maker; address signer; uint256 tokenId; uint256 makerAmount; uint256 takerAmount; uint8 side; uint8 signatureType; uint256 timestamp; bytes32 metadata; bytes32 builder; }',
  'struct Fill { Order order; bytes signature; uint256 shares; uint256 cash; uint256 fee; }',
  'function matchOrders(bytes32 key, bytes32 conditionId, Fill[] fills)',
  'function filled(bytes32 orderHash) view returns (uint256)',
  'function settled(bytes32 key) view returns (bool)',
  'function isSigned(Order order, bytes signature) view returns (bool)',
  'event OrderSettled(bytes32 indexed orderHash, address indexed maker, uint256 indexed tokenId, uint8 side, uint256 shares, uint256 cash, uint256 fee, bytes32 builder)',
  'event OrdersMatched(bytes32 indexed key, bytes32 indexed conditionId, bytes32 indexed takerOrderHash)',
])

export const rampAbi = parseAbi([
  'function wrap(address asset, address to, uint256 amount)',
  'function unwrap(address asset, address to, uint256 amount)',
  'function pause(address asset)',
  'function unpause(address asset)',
  'function paused(address asset) view returns (bool)',
])

export const walletAbi = parseAbi([
  'struct Call { address target; uint256 value; bytes data; }',
  'struct Batch { address wallet; uint256 nonce; uint256 deadline; Call[] calls; }',
  'function execute(Batch batch, bytes signature)',
  'function nonce() view returns (uint256)',
  'function deploy(address owner) returns (address)',
  'function execTransaction(address to, uint256 value, bytes data, uint8 operation, uint256 safeTxGas, uint256 baseGas, uint256 gasPrice, address gasToken, address refundReceiver, bytes signatures) returns (bool)',
])

export const oracleAbi = parseAbi([
  'struct Call { address target; bytes data; }',
  'function execute(Call[] calls)',
])

export const autoRedeemAbi = parseAbi([
  'function redeemTokens(address owner, bytes32 conditionId, bool isNegRisk)',
  'function redeemPositions(address owner, bytes31 conditionId)',
])

export const multicallAbi = parseAbi([
  'function aggregate3((address target, bool allowFailure, bytes callData)[] calls) payable returns ((bool success, bytes returnData)[])',
])
