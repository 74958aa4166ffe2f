// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ERC1155} from "@openzeppelin/contracts/token/ERC1155/ERC1155.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {CollectionIds} from "./shared/CollectionIds.sol";

/// Positions in the outcomes of conditions, written from the published interface and its documentation. A set of
/// outcomes is a number with one bit for each outcome. A position is collateral that pays when one of its set comes; a
/// partition of a set into parts splits a position of the set into one position for each part.
contract ConditionalTokens is ERC1155 {
    using SafeERC20 for IERC20;

    mapping(bytes32 conditionId => uint256[]) public payoutNumerators;
    mapping(bytes32 conditionId => uint256) public payoutDenominator;

    error BadOutcomeCount(uint256 count);
    error AlreadyPrepared(bytes32 conditionId);
    error NotPrepared(bytes32 conditionId);
    error AlreadyReported(bytes32 conditionId);
    error NotReported(bytes32 conditionId);
    error NoPayout(bytes32 conditionId);
    error BadPartition(uint256 indexSet);

    event ConditionPreparation(
        bytes32 indexed conditionId, address indexed oracle, bytes32 indexed questionId, uint256 outcomeSlotCount
    );
    event ConditionResolution(
        bytes32 indexed conditionId,
        address indexed oracle,
        bytes32 indexed questionId,
        uint256 outcomeSlotCount,
        uint256[] payoutNumerators
    );
    event PositionSplit(
        address indexed stakeholder,
        address collateralToken,
        bytes32 indexed parentCollectionId,
        bytes32 indexed conditionId,
        uint256[] partition,
        uint256 amount
    );
    event PositionsMerge(
        address indexed stakeholder,
        address collateralToken,
        bytes32 indexed parentCollectionId,
        bytes32 indexed conditionId,
        uint256[] partition,
        uint256 amount
    );
    event PayoutRedemption(
        address indexed redeemer,
        address indexed collateralToken,
        bytes32 indexed parentCollectionId,
        bytes32 conditionId,
        uint256[] indexSets,
        uint256 payout
    );

    constructor() ERC1155("") {}

    function prepareCondition(address oracle, bytes32 questionId, uint256 outcomeSlotCount) external {
        require(outcomeSlotCount > 1 && outcomeSlotCount <= 256, BadOutcomeCount(outcomeSlotCount));
        bytes32 conditionId = getConditionId(oracle, questionId, outcomeSlotCount);
        require(payoutNumerators[conditionId].length == 0, AlreadyPrepared(conditionId));
        payoutNumerators[conditionId] = new uint256[](outcomeSlotCount);
        emit ConditionPreparation(conditionId, oracle, questionId, outcomeSlotCount);
    }

    /// By the oracle of the condition. Outcome i pays payouts[i] of the sum of all payouts.
    function reportPayouts(bytes32 questionId, uint256[] calldata payouts) external {
        require(payouts.length > 1, BadOutcomeCount(payouts.length));
        bytes32 conditionId = getConditionId(msg.sender, questionId, payouts.length);
        require(payoutNumerators[conditionId].length == payouts.length, NotPrepared(conditionId));
        require(payoutDenominator[conditionId] == 0, AlreadyReported(conditionId));
        uint256 denominator = 0;
        for (uint256 i = 0; i < payouts.length; i++) {
            denominator += payouts[i];
        }
        require(denominator > 0, NoPayout(conditionId));
        payoutNumerators[conditionId] = payouts;
        payoutDenominator[conditionId] = denominator;
        emit ConditionResolution(conditionId, msg.sender, questionId, payouts.length, payouts);
    }

    function splitPosition(
        address collateralToken,
        bytes32 parentCollectionId,
        bytes32 conditionId,
        uint256[] calldata partition,
        uint256 amount
    ) external {
        (uint256[] memory ids, uint256[] memory amounts, uint256 union) =
            _parts(collateralToken, parentCollectionId, conditionId, partition, amount);
        if (union != _fullSet(conditionId)) {
            _burn(msg.sender, _positionId(collateralToken, parentCollectionId, conditionId, union), amount);
        } else if (parentCollectionId == bytes32(0)) {
            IERC20(collateralToken).safeTransferFrom(msg.sender, address(this), amount);
        } else {
            _burn(msg.sender, getPositionId(collateralToken, parentCollectionId), amount);
        }
        _mintBatch(msg.sender, ids, amounts, "");
        emit PositionSplit(msg.sender, collateralToken, parentCollectionId, conditionId, partition, amount);
    }

    function mergePositions(
        address collateralToken,
        bytes32 parentCollectionId,
        bytes32 conditionId,
        uint256[] calldata partition,
        uint256 amount
    ) external {
        (uint256[] memory ids, uint256[] memory amounts, uint256 union) =
            _parts(collateralToken, parentCollectionId, conditionId, partition, amount);
        _burnBatch(msg.sender, ids, amounts);
        if (union != _fullSet(conditionId)) {
            _mint(msg.sender, _positionId(collateralToken, parentCollectionId, conditionId, union), amount, "");
        } else if (parentCollectionId == bytes32(0)) {
            IERC20(collateralToken).safeTransfer(msg.sender, amount);
        } else {
            _mint(msg.sender, getPositionId(collateralToken, parentCollectionId), amount, "");
        }
        emit PositionsMerge(msg.sender, collateralToken, parentCollectionId, conditionId, partition, amount);
    }

    /// Pays for all that the caller holds of each set.
    function redeemPositions(
        address collateralToken,
        bytes32 parentCollectionId,
        bytes32 conditionId,
        uint256[] calldata indexSets
    ) external {
        uint256 denominator = payoutDenominator[conditionId];
        require(denominator > 0, NotReported(conditionId));
        uint256 total = 0;
        for (uint256 i = 0; i < indexSets.length; i++) {
            uint256 id = _positionId(collateralToken, parentCollectionId, conditionId, indexSets[i]);
            uint256 stake = balanceOf(msg.sender, id);
            uint256 numerator = _numeratorOf(conditionId, indexSets[i]);
            if (stake == 0) continue;
            total += stake * numerator / denominator;
            _burn(msg.sender, id, stake);
        }
        if (total > 0 && parentCollectionId == bytes32(0)) {
            IERC20(collateralToken).safeTransfer(msg.sender, total);
        } else if (total > 0) {
            _mint(msg.sender, getPositionId(collateralToken, parentCollectionId), total, "");
        }
        emit PayoutRedemption(
            msg.sender, collateralToken, parentCollectionId, conditionId, indexSets, total
        );
    }

    /// Zero where the condition is not prepared.
    function getOutcomeSlotCount(bytes32 conditionId) public view returns (uint256) {
        return payoutNumerators[conditionId].length;
    }

    function getConditionId(address oracle, bytes32 questionId, uint256 outcomeSlotCount)
        public
        pure
        returns (bytes32)
    {
        return keccak256(abi.encodePacked(oracle, questionId, outcomeSlotCount));
    }

    function getCollectionId(bytes32 parentCollectionId, bytes32 conditionId, uint256 indexSet)
        public
        view
        returns (bytes32)
    {
        return CollectionIds.idOf(parentCollectionId, conditionId, indexSet);
    }

    function getPositionId(address collateralToken, bytes32 collectionId) public pure returns (uint256) {
        return uint256(keccak256(abi.encodePacked(collateralToken, collectionId)));
    }

    function _positionId(address collateral, bytes32 parent, bytes32 conditionId, uint256 indexSet)
        private
        view
        returns (uint256)
    {
        return getPositionId(collateral, CollectionIds.idOf(parent, conditionId, indexSet));
    }

    /// The set of all outcomes.
    function _fullSet(bytes32 conditionId) private view returns (uint256) {
        uint256 count = payoutNumerators[conditionId].length;
        require(count > 0, NotPrepared(conditionId));
        return type(uint256).max >> (256 - count);
    }

    /// The positions of a partition, whose parts neither overlap nor are empty or full, and the union of its parts.
    function _parts(
        address collateral,
        bytes32 parent,
        bytes32 conditionId,
        uint256[] calldata partition,
        uint256 amount
    ) private view returns (uint256[] memory ids, uint256[] memory amounts, uint256 union) {
        require(partition.length > 1, BadPartition(0));
        uint256 full = _fullSet(conditionId);
        ids = new uint256[](partition.length);
        amounts = new uint256[](partition.length);
        for (uint256 i = 0; i < partition.length; i++) {
            uint256 part = partition[i];
            require(part > 0 && part < full && part & union == 0, BadPartition(part));
            union |= part;
            ids[i] = _positionId(collateral, parent, conditionId, part);
            amounts[i] = amount;
        }
    }

    function _numeratorOf(bytes32 conditionId, uint256 indexSet) private view returns (uint256 numerator) {
        require(indexSet > 0 && indexSet < _fullSet(conditionId), BadPartition(indexSet));
        uint256 count = payoutNumerators[conditionId].length;
        for (uint256 i = 0; i < count; i++) {
            if (indexSet >> i & 1 == 1) numerator += payoutNumerators[conditionId][i];
        }
    }
}
