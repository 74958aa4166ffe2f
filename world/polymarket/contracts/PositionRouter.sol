// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {Addresses} from "./shared/Addresses.sol";
import {PositionModule} from "./shared/PositionModule.sol";
import {PositionManager} from "./PositionManager.sol";

/// Opens, closes and redeems positions of protocol v2. The caller has approved it for its dollars and its positions.
contract PositionRouter {
    using SafeERC20 for IERC20;

    PositionManager private constant MANAGER = PositionManager(Addresses.POSITION_MANAGER);

    error UnknownModule(bytes31 conditionId);

    event PositionSplit(address indexed owner, bytes31 indexed conditionId, uint256 amount);
    event PositionsMerged(address indexed owner, bytes31 indexed conditionId, uint256 amount);
    event PositionRedeemed(
        address indexed owner, bytes31 indexed conditionId, uint256 outcomeIndex, uint256 amount, uint256 payout
    );

    function split(bytes31 conditionId, uint256 amount) external {
        PositionModule module = _moduleOf(conditionId);
        IERC20(Addresses.PUSD).safeTransferFrom(msg.sender, address(module), amount);
        module.open(conditionId, msg.sender, amount);
        emit PositionSplit(msg.sender, conditionId, amount);
    }

    function merge(bytes31 conditionId, uint256 amount) external {
        PositionModule module = _moduleOf(conditionId);
        uint256 yes = uint256(bytes32(conditionId));
        MANAGER.unsafeTransferFrom(msg.sender, address(module), yes, amount);
        MANAGER.unsafeTransferFrom(msg.sender, address(module), yes + 1, amount);
        module.close(conditionId, msg.sender, amount);
        emit PositionsMerged(msg.sender, conditionId, amount);
    }

    function redeem(bytes31 conditionId, uint256 outcomeIndex, uint256 amount) external {
        PositionModule module = _moduleOf(conditionId);
        uint256 id = uint256(bytes32(conditionId)) + outcomeIndex;
        MANAGER.unsafeTransferFrom(msg.sender, address(module), id, amount);
        uint256 payout = module.redeem(conditionId, outcomeIndex, msg.sender, amount);
        emit PositionRedeemed(msg.sender, conditionId, outcomeIndex, amount, payout);
    }

    function _moduleOf(bytes31 conditionId) private pure returns (PositionModule module) {
        module = PositionModule(MANAGER.moduleOf(uint256(bytes32(conditionId))));
        require(address(module) != address(0), UnknownModule(conditionId));
    }
}
