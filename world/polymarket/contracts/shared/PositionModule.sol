// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {ERC1155Holder} from "@openzeppelin/contracts/token/ERC1155/utils/ERC1155Holder.sol";
import {Addresses} from "./Addresses.sol";
import {PolymarketUsd} from "../PolymarketUsd.sol";
import {PositionManager} from "../PositionManager.sol";

/// A kind of condition of protocol v2. Router and exchange hand it dollars, or positions, and it turns the one into the
/// other. An id is, from the left: module 8 bits, hash 128, number of conditions 16, zero 64, chain of the resolution 16
/// (zero: this one), condition 16, outcome 8 (0 is YES). A condition's id is that without the outcome.
abstract contract PositionModule is ERC1155Holder {
    PositionManager internal constant MANAGER = PositionManager(Addresses.POSITION_MANAGER);
    PolymarketUsd private constant DOLLAR = PolymarketUsd(Addresses.PUSD);

    mapping(bytes31 conditionId => bool) public isPrepared;
    mapping(bytes31 conditionId => uint256[2]) private _payouts;

    error NotOracle(address caller);
    error NotRouter(address caller);
    error AlreadyPrepared(bytes31 conditionId);
    error NotPrepared(bytes31 conditionId);
    error AlreadyReported(bytes31 conditionId);
    error NotReported(bytes31 conditionId);
    error InvalidPayouts(uint256 yes, uint256 no);
    error InvalidOutcome(uint256 outcome);

    event ConditionPrepared(bytes31 indexed conditionId);
    event ConditionReported(bytes31 indexed conditionId, uint256 yes, uint256 no);

    modifier onlyOracle() {
        require(msg.sender == Addresses.ORACLE, NotOracle(msg.sender));
        _;
    }

    modifier onlyRouter() {
        require(msg.sender == Addresses.ROUTER || msg.sender == Addresses.EXCHANGE_V3, NotRouter(msg.sender));
        _;
    }

    /// What YES and NO pay, of their sum.
    function report(bytes31 conditionId, uint256 yes, uint256 no) external onlyOracle {
        require(isPrepared[conditionId], NotPrepared(conditionId));
        require(_payouts[conditionId][0] + _payouts[conditionId][1] == 0, AlreadyReported(conditionId));
        require(yes <= 1 && no <= 1 && yes + no > 0, InvalidPayouts(yes, no));
        _checkReport(conditionId, yes, no);
        _payouts[conditionId] = [yes, no];
        emit ConditionReported(conditionId, yes, no);
    }

    /// Of dollars that this contract holds.
    function open(bytes31 conditionId, address to, uint256 amount) external onlyRouter {
        require(isPrepared[conditionId], NotPrepared(conditionId));
        DOLLAR.burn(amount);
        MANAGER.mint(to, _pair(conditionId), amount);
    }

    /// Of positions that this contract holds.
    function close(bytes31 conditionId, address to, uint256 amount) external onlyRouter {
        MANAGER.burn(address(this), _pair(conditionId), amount);
        DOLLAR.mint(to, amount);
    }

    function redeem(bytes31 conditionId, uint256 outcome, address to, uint256 amount)
        external
        onlyRouter
        returns (uint256 payout)
    {
        require(outcome <= 1, InvalidOutcome(outcome));
        uint256[2] memory payouts = _payouts[conditionId];
        require(payouts[0] + payouts[1] > 0, NotReported(conditionId));
        uint256[] memory ids = new uint256[](1);
        ids[0] = uint256(bytes32(conditionId)) + outcome;
        MANAGER.burn(address(this), ids, amount);
        payout = amount * payouts[outcome] / (payouts[0] + payouts[1]);
        if (payout > 0) DOLLAR.mint(to, payout);
    }

    function payoutsOf(bytes31 conditionId) external view returns (uint256 yes, uint256 no) {
        return (_payouts[conditionId][0], _payouts[conditionId][1]);
    }

    function _checkReport(bytes31 conditionId, uint256 yes, uint256 no) internal virtual;

    function _prepare(bytes31 conditionId) internal {
        require(!isPrepared[conditionId], AlreadyPrepared(conditionId));
        isPrepared[conditionId] = true;
        emit ConditionPrepared(conditionId);
    }

    /// Module and hash, and how many conditions there are.
    function _baseOf(uint256 module, bytes calldata data, uint256 conditions) internal pure returns (bytes32) {
        uint256 hash = uint128(uint256(keccak256(abi.encode(module, data))));
        return bytes32(module << 248 | hash << 120 | conditions << 104);
    }

    function _pair(bytes31 conditionId) private pure returns (uint256[] memory ids) {
        ids = new uint256[](2);
        ids[0] = uint256(bytes32(conditionId));
        ids[1] = ids[0] + 1;
    }
}
