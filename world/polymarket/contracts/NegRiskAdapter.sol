// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ERC1155Holder} from "@openzeppelin/contracts/token/ERC1155/utils/ERC1155Holder.sol";
import {Addresses} from "./shared/Addresses.sol";
import {BinarySets} from "./shared/BinarySets.sol";
import {ConditionalTokens} from "./ConditionalTokens.sol";
import {WrappedCollateral} from "./WrappedCollateral.sol";

/// Markets whose questions exclude each other: at most one resolves to YES. A question's id is that of its market plus
/// its index, and its condition has this contract as the oracle and wrapped collateral as the collateral.
contract NegRiskAdapter is ERC1155Holder {
    using SafeERC20 for IERC20;

    struct Market {
        address oracle;
        uint8 questionCount;
        bool isDetermined;
        uint8 result;
        uint256 feeBips;
    }

    ConditionalTokens private constant TOKENS = ConditionalTokens(Addresses.CONDITIONAL_TOKENS);
    WrappedCollateral private constant WRAPPED = WrappedCollateral(Addresses.WRAPPED_COLLATERAL);
    bytes32 private constant MARKET_MASK = bytes32(type(uint256).max << 8);
    /// Holds positions that nobody may redeem.
    address private constant BURNED = 0xa5Ef39C3D3e10d0B270233af41CaC69796B12966;

    mapping(bytes32 marketId => Market) public markets;

    error MarketAlreadyPrepared(bytes32 marketId);
    error MarketNotPrepared(bytes32 marketId);
    error MarketAlreadyDetermined(bytes32 marketId);
    error OnlyOracle(bytes32 marketId);
    error InvalidIndexSet(uint256 indexSet);
    error NotTheCollateral(address token);

    event MarketPrepared(bytes32 indexed marketId, address indexed oracle, uint256 feeBips, bytes data);
    event QuestionPrepared(bytes32 indexed marketId, bytes32 indexed questionId, uint256 index, bytes data);
    event OutcomeReported(bytes32 indexed marketId, bytes32 indexed questionId, bool outcome);
    event PositionSplit(address indexed stakeholder, bytes32 indexed conditionId, uint256 amount);
    event PositionsMerge(address indexed stakeholder, bytes32 indexed conditionId, uint256 amount);
    event PositionsConverted(
        address indexed stakeholder, bytes32 indexed marketId, uint256 indexed indexSet, uint256 amount
    );
    event PayoutRedemption(
        address indexed redeemer, bytes32 indexed conditionId, uint256[] amounts, uint256 payout
    );

    /// The caller becomes the oracle of the market.
    function prepareMarket(uint256 feeBips, bytes calldata metadata) external returns (bytes32 marketId) {
        marketId = keccak256(abi.encode(msg.sender, feeBips, metadata)) & MARKET_MASK;
        require(markets[marketId].oracle == address(0), MarketAlreadyPrepared(marketId));
        markets[marketId].oracle = msg.sender;
        markets[marketId].feeBips = feeBips;
        emit MarketPrepared(marketId, msg.sender, feeBips, metadata);
    }

    function prepareQuestion(bytes32 marketId, bytes calldata metadata) external returns (bytes32 questionId) {
        Market storage market = _ofOracle(marketId);
        uint8 index = market.questionCount++;
        questionId = bytes32(uint256(marketId) + index);
        TOKENS.prepareCondition(address(this), questionId, 2);
        emit QuestionPrepared(marketId, questionId, index, metadata);
    }

    function reportOutcome(bytes32 questionId, bool outcome) external {
        bytes32 marketId = questionId & MARKET_MASK;
        Market storage market = _ofOracle(marketId);
        if (outcome) {
            require(!market.isDetermined, MarketAlreadyDetermined(marketId));
            market.isDetermined = true;
            market.result = uint8(uint256(questionId));
        }
        uint256[] memory payouts = new uint256[](2);
        payouts[outcome ? 0 : 1] = 1;
        TOKENS.reportPayouts(questionId, payouts);
        emit OutcomeReported(marketId, questionId, outcome);
    }

    function splitPosition(address token, bytes32, bytes32 conditionId, uint256[] calldata, uint256 amount)
        external
    {
        require(token == Addresses.USDCE, NotTheCollateral(token));
        splitPosition(conditionId, amount);
    }

    /// Dollars in, both positions out.
    function splitPosition(bytes32 conditionId, uint256 amount) public {
        IERC20(Addresses.USDCE).safeTransferFrom(msg.sender, address(this), amount);
        IERC20(Addresses.USDCE).forceApprove(address(WRAPPED), amount);
        WRAPPED.wrap(address(this), amount);
        _split(conditionId, amount);
        (uint256[] memory ids, uint256[] memory amounts) = _pair(conditionId, amount);
        TOKENS.safeBatchTransferFrom(address(this), msg.sender, ids, amounts, "");
        emit PositionSplit(msg.sender, conditionId, amount);
    }

    function mergePositions(address token, bytes32, bytes32 conditionId, uint256[] calldata, uint256 amount)
        external
    {
        require(token == Addresses.USDCE, NotTheCollateral(token));
        mergePositions(conditionId, amount);
    }

    function mergePositions(bytes32 conditionId, uint256 amount) public {
        (uint256[] memory ids, uint256[] memory amounts) = _pair(conditionId, amount);
        TOKENS.safeBatchTransferFrom(msg.sender, address(this), ids, amounts, "");
        TOKENS.mergePositions(address(WRAPPED), 0, conditionId, BinarySets.both(), amount);
        WRAPPED.unwrap(msg.sender, amount);
        emit PositionsMerge(msg.sender, conditionId, amount);
    }

    /// Amounts of YES and NO.
    function redeemPositions(bytes32 conditionId, uint256[] calldata amounts) external {
        (uint256[] memory ids,) = _pair(conditionId, 0);
        TOKENS.safeBatchTransferFrom(msg.sender, address(this), ids, amounts, "");
        TOKENS.redeemPositions(address(WRAPPED), 0, conditionId, BinarySets.both());
        uint256 payout = WRAPPED.balanceOf(address(this));
        if (payout > 0) WRAPPED.unwrap(msg.sender, payout);
        emit PayoutRedemption(msg.sender, conditionId, amounts, payout);
    }

    /// NO of several questions is worth YES of every other question, and a dollar for each NO beyond the first.
    function convertPositions(bytes32 marketId, uint256 indexSet, uint256 amount) external {
        uint256 count = markets[marketId].questionCount;
        require(count > 1, MarketNotPrepared(marketId));
        require(indexSet > 0 && indexSet >> count == 0, InvalidIndexSet(indexSet));
        uint256 given = 0;
        for (uint256 i = 0; i < count; i++) {
            bytes32 conditionId = getConditionId(bytes32(uint256(marketId) + i));
            (uint256[] memory ids,) = _pair(conditionId, amount);
            if (indexSet >> i & 1 == 1) {
                given++;
                TOKENS.safeTransferFrom(msg.sender, BURNED, ids[1], amount, "");
                continue;
            }
            WRAPPED.mint(amount);
            _split(conditionId, amount);
            TOKENS.safeTransferFrom(address(this), msg.sender, ids[0], amount, "");
            TOKENS.safeTransferFrom(address(this), BURNED, ids[1], amount, "");
        }
        if (given > 1) WRAPPED.release(msg.sender, amount * (given - 1));
        emit PositionsConverted(msg.sender, marketId, indexSet, amount);
    }

    function balanceOf(address owner, uint256 id) external view returns (uint256) {
        return TOKENS.balanceOf(owner, id);
    }

    function balanceOfBatch(address[] calldata owners, uint256[] calldata ids)
        external
        view
        returns (uint256[] memory)
    {
        return TOKENS.balanceOfBatch(owners, ids);
    }

    function getConditionId(bytes32 questionId) public view returns (bytes32) {
        return TOKENS.getConditionId(address(this), questionId, 2);
    }

    /// `outcome` true is YES.
    function getPositionId(bytes32 questionId, bool outcome) external view returns (uint256) {
        (uint256[] memory ids,) = _pair(getConditionId(questionId), 0);
        return ids[outcome ? 0 : 1];
    }

    function getOracle(bytes32 marketId) external view returns (address) {
        return markets[marketId].oracle;
    }

    function getQuestionCount(bytes32 marketId) external view returns (uint256) {
        return markets[marketId].questionCount;
    }

    function getDetermined(bytes32 marketId) external view returns (bool) {
        return markets[marketId].isDetermined;
    }

    function getResult(bytes32 marketId) external view returns (uint256) {
        return markets[marketId].result;
    }

    function wcol() external pure returns (address) {
        return address(WRAPPED);
    }

    function ctf() external pure returns (address) {
        return address(TOKENS);
    }

    function col() external pure returns (address) {
        return Addresses.USDCE;
    }

    function _ofOracle(bytes32 marketId) private view returns (Market storage market) {
        market = markets[marketId];
        require(market.oracle != address(0), MarketNotPrepared(marketId));
        require(market.oracle == msg.sender, OnlyOracle(marketId));
    }

    /// Of wrapped collateral that this contract holds.
    function _split(bytes32 conditionId, uint256 amount) private {
        WRAPPED.approve(address(TOKENS), amount);
        TOKENS.splitPosition(address(WRAPPED), 0, conditionId, BinarySets.both(), amount);
    }

    function _pair(bytes32 conditionId, uint256 amount)
        private
        view
        returns (uint256[] memory ids, uint256[] memory amounts)
    {
        return BinarySets.positions(address(WRAPPED), conditionId, amount);
    }
}
